import t from 'tap'
import { acceptTogether } from '../fixtures/accept.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'
import { sendRaw } from '../fixtures/wire.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const emails = `${base}/v1/emails`
const batches = `${base}/v1/emails/batch`

const withKey = (key: string) => ({ 'Idempotency-Key': key })

const messagesOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select count(*)::integer as count from app.messages
    where organisation_id = core.decode_id('org', ${id})`
  return row?.count
}

/** Of what is past already there is no partition a day later. */
const moveKeys = ({ id }: TestOrganisation, by: string) => sql`
  update app.idempotency_keys set created_at = created_at - ${by}::interval
  where organisation_id = core.decode_id('org', ${id}) and created_at > now() - interval '24 hours'`

t.test('a repeated send is answered byte for byte and accepted once', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const first = await post(emails, liveKey, anEmail(domain), withKey('order 17'))
  t.equal(first.status, 200)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const before = await traces(sql)
  for (let n = 0; n < 3; n++) {
    const again = await post(emails, liveKey, anEmail(domain), withKey('order 17'))
    t.equal(again.status, 200)
    t.equal(again.text, first.text)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal(again.headers.get('content-type'), first.headers.get('content-type'))
  }
  t.strictSame(await traces(sql), before)
  t.equal(await messagesOf(organisation), 1)
})

t.test('a batch is replayed byte for byte, with its errors', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const batch = {
    emails: [
      anEmail(domain),
      anEmail('elsewhere.example'),
      {},
      anEmail(domain, { subject: 'Grüße "\\\t"' }),
    ],
  }
  const first = await post(batches, liveKey, batch, withKey('a'))
  t.strictSame(
    first.json.results.map(({ ok }: { ok: boolean }) => ok),
    [true, false, false, true],
  )
  const again = await post(batches, liveKey, batch, withKey('a'))
  t.equal(again.text, first.text)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(await messagesOf(organisation), 2)
})

t.test('a key is refused with another body or at another path', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const email = anEmail(domain)
  await post(emails, liveKey, email, withKey('a'))
  const before = await traces(sql)
  const others = [
    [emails, { ...email, subject: 'Another' }],
    [emails, { ...email, tags: [] }],
    // The same fields in another order are other bytes.
    [emails, Object.fromEntries(Object.entries(email).reverse())],
    [emails, `${JSON.stringify(email)} `],
    [batches, { emails: [email] }],
  ] as const
  for (const [path, body] of others) {
    isRefused(t, await post(path, liveKey, body, withKey('a')), 'idempotency_conflict')
  }
  t.strictSame(await traces(sql), before, 'nothing was left behind')

  await post(batches, liveKey, { emails: [email] }, withKey('b'))
  isRefused(t, await post(emails, liveKey, email, withKey('b')), 'idempotency_conflict')
  const replay = await post(emails, liveKey, email, withKey('a'))
  t.equal(replay.headers.get('idempotent-replayed'), 'true', 'the first body still replays')
})

t.test(
  'the same key and bytes at another path are first of all judged as a body there',
  async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    const body = JSON.stringify({ emails: [anEmail(domain)] })
    await post(batches, liveKey, body, withKey('a'))
    isRefused(t, await post(emails, liveKey, body, withKey('a')), 'validation_error', {
      emails: ['unknown field'],
      from: ['is required'],
      to: ['is required'],
      subject: ['is required'],
      _: ['one of html, text or templateId is required'],
    })
  },
)

t.test('a key is known for 24 hours and not for 25', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const send = (subject: string) =>
    post(emails, liveKey, anEmail(domain, { subject }), withKey('a'))
  const first = await send('One')

  await moveKeys(organisation, '23 hours 59 minutes')
  t.equal((await send('One')).text, first.text, 'a minute before')

  await moveKeys(organisation, '1 hour 1 minute')
  const later = await send('One')
  t.equal(later.status, 200)
  t.not(later.json.id, first.json.id, 'a new message an hour after')
  t.equal(later.headers.get('idempotent-replayed'), null)
  t.equal((await send('One')).text, later.text, 'which is what is replayed from then on')

  await moveKeys(organisation, '25 hours')
  t.equal((await send('Two')).status, 200, 'and another body is free to take the key')
  t.equal(await messagesOf(organisation), 3)
})

t.test('a key belongs to one organisation and one mode', async (t) => {
  const one = await createOrganisation(sql)
  const two = await createOrganisation(sql)
  const answers = await Promise.all([
    post(emails, one.liveKey, anEmail(one.domain, { subject: '1' }), withKey('a')),
    post(emails, one.testKey, anEmail(one.domain, { subject: '2' }), withKey('a')),
    post(emails, two.liveKey, anEmail(two.domain, { subject: '3' }), withKey('a')),
    post(emails, two.testKey, anEmail(two.domain, { subject: '4' }), withKey('a')),
  ])
  t.strictSame(
    answers.map(({ status, json }) => [status, json.mode]),
    [
      [200, 'live'],
      [200, 'test'],
      [200, 'live'],
      [200, 'test'],
    ],
  )
  t.equal(new Set(answers.map(({ json }) => json.id)).size, 4)
  const [row] = await sql`select ops.create_api_key(${one.id}) as key`
  const other = await post(emails, row?.key, anEmail(one.domain, { subject: '1' }), withKey('a'))
  t.equal(other.text, answers[0]?.text, 'another live key of the organisation replays')
})

t.test('a refused send releases its key, and the retry proceeds', async (t) => {
  const obstacles: Record<
    string,
    [
      number,
      (organisation: TestOrganisation) => unknown,
      (organisation: TestOrganisation) => unknown,
    ]
  > = {
    domain: [
      403,
      ({ domain }) => sql`update app.domains set status = 'pending' where name = ${domain}`,
      ({ domain }) => sql`update app.domains set status = 'verified' where name = ${domain}`,
    ],
    suppressed: [
      422,
      ({ id }) => sql`
        insert into app.suppressions (id, organisation_id, email, reason)
        values (gen_random_uuid(), core.decode_id('org', ${id}), 'delivered@sandbox.postgram.test', 'manual')`,
      ({ id }) => sql`
        delete from app.suppressions where organisation_id = core.decode_id('org', ${id})`,
    ],
    allowance: [
      402,
      ({ id }) => sql`
        update app.allowances set emails_used = 1000000
        where organisation_id = core.decode_id('org', ${id})`,
      ({ id }) => sql`
        update app.allowances set emails_used = 0
        where organisation_id = core.decode_id('org', ${id})`,
    ],
    paused: [
      423,
      ({ id }) => sql`select ops.pause(${id}, 'complaints')`,
      ({ id }) => sql`select ops.resume(${id})`,
    ],
    suspended: [
      403,
      ({ id }) => sql`select ops.suspend(${id}, 'did not pay')`,
      ({ id }) => sql`select ops.reinstate(${id})`,
    ],
  }
  for (const [name, [status, put, remove]] of Object.entries(obstacles)) {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    await put(organisation)
    const before = await traces(sql)
    t.equal((await post(emails, liveKey, anEmail(domain), withKey('a'))).status, status, name)
    t.equal((await post(emails, liveKey, anEmail(domain), withKey('a'))).status, status, name)
    t.strictSame(await traces(sql), before, 'nothing was left behind')
    await remove(organisation)
    const retry = await post(emails, liveKey, anEmail(domain), withKey('a'))
    t.equal(retry.status, 200, `${name}, once it is out of the way`)
    t.equal(retry.headers.get('idempotent-replayed'), null)
    t.equal(await messagesOf(organisation), 1)
  }
})

t.test('an invalid send releases its key, so that a mended body may take it', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  t.equal((await post(emails, liveKey, {}, withKey('a'))).status, 422)
  t.equal((await post(emails, liveKey, '{', withKey('a'))).status, 400)
  const template = anEmail(domain, { text: undefined, templateId: 'tpl_1' })
  t.equal((await post(emails, liveKey, template, withKey('a'))).status, 422)
  t.equal((await post(emails, liveKey, anEmail(domain), withKey('a'))).status, 200)
})

t.test('a batch whose items are all refused is an answer, and replayed as one', async (t) => {
  const organisation = await createOrganisation(sql)
  const batch = { emails: [{}, anEmail('elsewhere.example')] }
  const first = await post(batches, organisation.liveKey, batch, withKey('a'))
  await sql`select ops.verify_domain(${organisation.id}, 'elsewhere.example')`
  const again = await post(batches, organisation.liveKey, batch, withKey('a'))
  t.equal(again.text, first.text)
  t.equal(await messagesOf(organisation), 0)
})

t.test('a key may have 1 to 255 printable ASCII characters', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  for (const key of ['a', 'k'.repeat(255), '~!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}', 'two words']) {
    const first = await post(emails, liveKey, anEmail(domain), withKey(key))
    const again = await post(emails, liveKey, anEmail(domain), withKey(key))
    t.equal(first.status, 200, `${key.length} characters`)
    t.equal(again.text, first.text)
  }
  const before = await traces(sql)
  for (const key of ['', 'k'.repeat(256), 'tab\there', 'caf\u00e9', '\u00a0', 'k'.repeat(8000)]) {
    for (const [path, body] of [
      [emails, anEmail(domain)],
      [batches, { emails: [anEmail(domain)] }],
    ] as const) {
      const answer = await post(path, liveKey, body, withKey(key))
      const fields = { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] }
      isRefused(t, answer, 'validation_error', fields, { name: JSON.stringify(key.slice(0, 9)) })
    }
  }
  const raw = await sendRaw(
    base,
    `POST /v1/emails HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\u0001b\r\nContent-Length: 2\r\n\r\n{}`,
  )
  t.strictSame([raw.status, raw.json.error.code], [422, 'validation_error'], 'a control character')
  t.strictSame(await traces(sql), before, 'nothing was left behind')
})

t.test('without a key every send is a message of its own', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const answers = await Promise.all([1, 2, 3].map(() => post(emails, liveKey, anEmail(domain))))
  t.equal(new Set(answers.map(({ json }) => json.id)).size, 3)
  t.equal(await messagesOf(organisation), 3)
})

t.test('a caller cannot name the key that a send without one has', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const first = await post(emails, liveKey, anEmail(domain))
  const requestId = first.headers.get('x-request-id')
  const second = await post(emails, liveKey, anEmail(domain), withKey(`request:${requestId}`))
  t.equal(second.headers.get('idempotent-replayed'), null)
  t.equal(await messagesOf(organisation), 2)
})

t.test('what is accepted in one transaction is as if it had come one by one', async (t) => {
  const ours = await createOrganisation(sql)
  const theirs = await createOrganisation(sql)
  const one = anEmail(ours.domain, { subject: 'One' })
  const two = anEmail(ours.domain, { subject: 'Two' })
  const answers = await acceptTogether(sql, [
    { organisation: ours, key: 'a', email: one },
    { organisation: ours, key: 'a', email: one },
    { organisation: ours, key: 'a', email: two },
    { organisation: ours, mode: 'test', key: 'a', email: two },
    { organisation: theirs, key: 'a', email: anEmail(theirs.domain) },
    { organisation: ours, key: 'b', email: one },
    { organisation: ours, key: 'a', email: one },
  ])
  t.strictSame(
    answers.map(({ code, isReplayed }) => [code, isReplayed]),
    [
      [null, false],
      [null, true],
      ['idempotency_conflict', false],
      [null, false],
      [null, false],
      [null, false],
      [null, true],
    ],
  )
  t.equal(answers[1]?.body, answers[0]?.body)
  t.equal(answers[6]?.body, answers[0]?.body)
  t.equal(await messagesOf(ours), 3)
  t.equal(await messagesOf(theirs), 1)
})

t.test('a refused call leaves its key to the next one of the same transaction', async (t) => {
  const organisation = await createOrganisation(sql)
  const refused = anEmail('elsewhere.example')
  const answers = await acceptTogether(sql, [
    { organisation, key: 'a', email: refused },
    { organisation, key: 'a', email: anEmail(organisation.domain) },
    { organisation, key: 'a', email: refused },
  ])
  t.strictSame(
    answers.map(({ code }) => code),
    ['domain_not_verified', null, 'idempotency_conflict'],
  )
  t.equal(await messagesOf(organisation), 1)
})

t.test('one endpoint has one fingerprint, however its path is spelled', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const first = await post(emails, liveKey, anEmail(domain), withKey('spelling'))
  t.equal(first.status, 200)
  for (const path of ['/v1/emails/', '/V1/Emails', '/v1/%65mails', '/%76%31/emails/']) {
    const again = await post(base + path, liveKey, anEmail(domain), withKey('spelling'))
    t.strictSame(
      [again.status, again.headers.get('idempotent-replayed'), again.text],
      [200, 'true', first.text],
      path,
    )
  }
  const added = await post(`${base}/v1/domains`, liveKey, { name: 'spelled.example' })
  const verify = (id: string, end = '/verify') =>
    post(`${base}/v1/domains/${id}${end}`, liveKey, '', withKey('verify'))
  const { id } = added.json
  const verified = await verify(id)
  t.equal(verified.status, 200)
  for (const again of [
    await verify(id.replace('_', '%5f')),
    await verify(id, '/Verify/'),
    await verify(id.replaceAll('d', '%64')),
  ]) {
    t.strictSame([again.status, again.headers.get('idempotent-replayed')], [200, 'true'])
  }
  const other = await post(`${base}/v1/domains`, liveKey, { name: 'other-spelled.example' })
  isRefused(t, await verify(other.json.id), 'idempotency_conflict')
})
