import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms, isRefused, post, sendRaw } from '../fixtures/http.ts'
import { acceptTogether } from '../fixtures/messages.ts'
import { createOrganisation, suppress, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
/** A second process of the service with the same database. */
const { base: otherBase } = await startTestService(url, { roles: ['api'] })
const emails = `${base}/v1/emails`
const batches = `${base}/v1/emails/batch`
const sms = `${base}/v1/sms`

const withKey = (key: string) => ({ 'Idempotency-Key': key })

const messagesOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select count(*)::integer as count from app.messages
    where organisation_id = core.decode_id('org', ${id})`
  return row?.count
}

/** Keys older than a day are skipped: their partition a day earlier does not exist. */
const moveKeys = ({ id }: TestOrganisation, by: string) => sql`
  update app.idempotency_keys set created_at = created_at - ${by}::interval
  where organisation_id = core.decode_id('org', ${id}) and created_at > now() - interval '24 hours'`

type Obstacle = {
  status: number
  put(organisation: TestOrganisation): unknown
  remove(organisation: TestOrganisation): unknown
}

type Channel = {
  path: string
  body(organisation: TestOrganisation): Record<string, unknown>
  /** Another message than `body`. */
  otherBody(organisation: TestOrganisation): Record<string, unknown>
  /** Wraps items into the body of a batch. */
  batchOf(...items: unknown[]): object
  /** Items of which only the first is accepted, for lack of what `repair` provides. */
  refusedItems(organisation: TestOrganisation): unknown[]
  repair(organisation: TestOrganisation): unknown
  obstacles: Record<string, Obstacle>
}

const paused: Obstacle = {
  status: 423,
  put: ({ id }) => sql`select ops.pause(${id}, 'complaints')`,
  remove: ({ id }) => sql`select ops.resume(${id})`,
}
const suspended: Obstacle = {
  status: 403,
  put: ({ id }) => sql`select ops.suspend(${id}, 'did not pay')`,
  remove: ({ id }) => sql`select ops.reinstate(${id})`,
}

const channels: Record<string, Channel> = {
  email: {
    path: emails,
    body: ({ domain }) => anEmail(domain),
    otherBody: ({ domain }) => anEmail(domain, { subject: 'Another' }),
    batchOf: (...items) => ({ emails: items }),
    refusedItems: ({ domain }) => [
      anEmail(domain, { subject: 'Grüße "\\\t"' }),
      {},
      anEmail('elsewhere.example'),
    ],
    repair: ({ id }) => sql`select ops.verify_domain(${id}, 'elsewhere.example')`,
    obstacles: {
      domain: {
        status: 403,
        put: ({ domain }) => sql`update app.domains set status = 'pending' where name = ${domain}`,
        remove: ({ id, domain }) => sql`select ops.verify_domain(${id}, ${domain})`,
      },
      suppressed: {
        status: 422,
        put: (organisation) => suppress(sql, organisation, 'delivered@sandbox.postgram.test'),
        remove: ({ id }) => sql`
          delete from app.suppressions where organisation_id = core.decode_id('org', ${id})`,
      },
      allowance: {
        status: 402,
        put: ({ id }) => sql`
          update app.allowances set emails_used = 1000000
          where organisation_id = core.decode_id('org', ${id})`,
        remove: ({ id }) => sql`
          update app.allowances set emails_used = 0
          where organisation_id = core.decode_id('org', ${id})`,
      },
      paused,
      suspended,
    },
  },
  sms: {
    path: sms,
    body: () => anSms(),
    otherBody: () => anSms({ body: 'Another' }),
    batchOf: (...items) => ({ messages: items }),
    refusedItems: () => [anSms(), {}, anSms()],
    repair: ({ id }) => sql`select ops.grant_credits(${id}, 100, 'paid')`,
    obstacles: {
      credits: {
        status: 402,
        put: ({ id }) => sql`
          update app.allowances set sms_used = 100 where organisation_id = core.decode_id('org', ${id})`,
        remove: ({ id }) => sql`select ops.grant_credits(${id}, 1, 'paid')`,
      },
      paused,
      suspended,
    },
  },
}

for (const [name, channel] of Object.entries(channels)) {
  const { path, body, otherBody, batchOf } = channel
  const batchPath = `${path}/batch`

  t.test(`${name}: a repeated send gets the same bytes and is accepted once`, async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey } = organisation
    const first = await post(path, liveKey, body(organisation), withKey('order 17'))
    t.equal(first.status, 200)
    t.equal(first.headers.get('idempotent-replayed'), null)
    const before = await traces(sql)
    for (let n = 0; n < 3; n++) {
      const again = await post(path, liveKey, body(organisation), withKey('order 17'))
      t.strictSame([again.status, again.text], [200, first.text])
      t.equal(again.headers.get('idempotent-replayed'), 'true')
      t.equal(again.headers.get('content-type'), first.headers.get('content-type'))
    }
    t.strictSame(await traces(sql), before, 'a replay stores and costs nothing')
    t.equal(await messagesOf(organisation), 1)
  })

  t.test(
    `${name}: a batch is replayed with its errors, although their causes are fixed`,
    async (t) => {
      const organisation = await createOrganisation(sql, { smsIncluded: 1 })
      const { liveKey } = organisation
      const items = channel.refusedItems(organisation)
      const partly = await post(batchPath, liveKey, batchOf(...items), withKey('partly'))
      const refused = await post(batchPath, liveKey, batchOf(...items.slice(1)), withKey('refused'))
      t.strictSame(
        [partly, refused].map(({ json }) => json.results.map(({ ok }: { ok: boolean }) => ok)),
        [
          [true, false, false],
          [false, false],
        ],
      )
      await channel.repair(organisation)
      for (const [first, key, sent] of [
        [partly, 'partly', items],
        [refused, 'refused', items.slice(1)],
      ] as const) {
        const again = await post(batchPath, liveKey, batchOf(...sent), withKey(key))
        t.equal(again.text, first.text, key)
        t.equal(again.headers.get('idempotent-replayed'), 'true')
      }
      t.equal(await messagesOf(organisation), 1)
    },
  )

  t.test(`${name}: a key with another body, path or channel is a conflict`, async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey } = organisation
    const message = body(organisation)
    await post(path, liveKey, message, withKey('single'))
    await post(batchPath, liveKey, batchOf(message), withKey('batch'))
    const before = await traces(sql)
    const conflicts: [name: string, path: string, body: unknown, key: string][] = [
      ['another text', path, otherBody(organisation), 'single'],
      ['another field', path, { ...message, tags: [] }, 'single'],
      [
        'another order of fields',
        path,
        Object.fromEntries(Object.entries(message).reverse()),
        'single',
      ],
      ['a blank more', path, `${JSON.stringify(message)} `, 'single'],
      ['a batch', batchPath, batchOf(message), 'single'],
      ['no batch', path, message, 'batch'],
    ]
    for (const other of Object.values(channels)) {
      if (other.path === path) continue
      const theirs = other.body(organisation)
      conflicts.push(['the other channel', other.path, theirs, 'single'])
      conflicts.push([
        'a batch of the other channel',
        `${other.path}/batch`,
        other.batchOf(theirs),
        'single',
      ])
    }
    for (const [name, path, body, key] of conflicts) {
      const response = await post(path, liveKey, body, withKey(key))
      isRefused(t, response, 'idempotency_conflict', undefined, { name })
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
    const replay = await post(path, liveKey, message, withKey('single'))
    t.equal(replay.headers.get('idempotent-replayed'), 'true', 'the first body is still replayed')
  })

  t.test(`${name}: a refused send releases its key for the retry`, async (t) => {
    for (const [obstacle, { status, put, remove }] of Object.entries(channel.obstacles)) {
      const organisation = await createOrganisation(sql)
      const send = () => post(path, organisation.liveKey, body(organisation), withKey('a'))
      await put(organisation)
      const before = await traces(sql)
      t.equal((await send()).status, status, obstacle)
      t.equal((await send()).status, status, obstacle)
      t.strictSame(await traces(sql), before, 'nothing is stored')
      await remove(organisation)
      const retry = await send()
      t.equal(retry.status, 200, `${obstacle} removed`)
      t.equal(retry.headers.get('idempotent-replayed'), null)
      t.equal(await messagesOf(organisation), 1)
    }
  })
}

t.test('SMS: a refused sender ID releases the key for the retry', async (t) => {
  const organisation = await createOrganisation(sql)
  const send = () => post(sms, organisation.liveKey, anSms({ senderId: 'Acme' }), withKey('a'))
  t.equal((await send()).status, 422)
  await sql`select ops.approve_sender(${organisation.id}, 'Acme')`
  const retry = await send()
  t.strictSame([retry.status, retry.headers.get('idempotent-replayed')], [200, null])
})

t.test('SMS: a replay shows the credits that the first send took', async (t) => {
  const { id, liveKey } = await createOrganisation(sql, { smsIncluded: 2 })
  await sql`select ops.grant_credits(${id}, 5, 'paid')`
  const body = anSms({ body: 'x'.repeat(307) })
  const first = await post(sms, liveKey, body, withKey('a'))
  t.match(first.json, { segments: 3, credits: 1 })
  t.equal((await post(sms, liveKey, body, withKey('a'))).text, first.text)
})

t.test(
  'both channels with one key at the same time: one is accepted, the other refused',
  async (t) => {
    for (let round = 0; round < 10; round++) {
      const organisation = await createOrganisation(sql)
      const { liveKey, domain } = organisation
      const responses = await Promise.all([
        post(sms, liveKey, anSms(), withKey('a')),
        post(`${otherBase}/v1/emails`, liveKey, anEmail(domain), withKey('a')),
        post(emails, liveKey, anEmail(domain), withKey('a')),
        post(`${otherBase}/v1/sms`, liveKey, anSms(), withKey('a')),
      ])
      t.strictSame(responses.map(({ status }) => status).sort(), [200, 200, 409, 409])
      const accepted = responses.filter(({ status }) => status === 200)
      t.equal(new Set(accepted.map(({ text }) => text)).size, 1)
      t.equal(await messagesOf(organisation), 1)
    }
  },
)

t.test(
  'the same key and bytes at another path: validation_error comes before the conflict',
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

t.test('a key is replayed for 24 hours and free after 25', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const send = (subject: string) =>
    post(emails, liveKey, anEmail(domain, { subject }), withKey('a'))
  const first = await send('One')

  await moveKeys(organisation, '23 hours 59 minutes')
  t.equal((await send('One')).text, first.text, 'after 23 h 59 min')

  await moveKeys(organisation, '1 hour 1 minute')
  const later = await send('One')
  t.equal(later.status, 200)
  t.not(later.json.id, first.json.id, 'a new message after 25 h')
  t.equal(later.headers.get('idempotent-replayed'), null)
  t.equal((await send('One')).text, later.text, 'the new response is replayed from then on')

  await moveKeys(organisation, '25 hours')
  t.equal((await send('Two')).status, 200, 'the key is free for another body')
  t.equal(await messagesOf(organisation), 3)
})

t.test('a key is valid for one organisation and one mode', async (t) => {
  const one = await createOrganisation(sql)
  const two = await createOrganisation(sql)
  const responses = await Promise.all([
    post(emails, one.liveKey, anEmail(one.domain, { subject: '1' }), withKey('a')),
    post(emails, one.testKey, anEmail(one.domain, { subject: '2' }), withKey('a')),
    post(emails, two.liveKey, anEmail(two.domain, { subject: '3' }), withKey('a')),
    post(emails, two.testKey, anEmail(two.domain, { subject: '4' }), withKey('a')),
  ])
  t.strictSame(
    responses.map(({ status, json }) => [status, json.mode]),
    [
      [200, 'live'],
      [200, 'test'],
      [200, 'live'],
      [200, 'test'],
    ],
  )
  t.equal(new Set(responses.map(({ json }) => json.id)).size, 4)
  const [row] = await sql`select ops.create_api_key(${one.id}) as key`
  const other = await post(emails, row?.key, anEmail(one.domain, { subject: '1' }), withKey('a'))
  t.equal(other.text, responses[0]?.text, 'another live key of the organisation replays')
})

t.test('an invalid send releases its key for a corrected body', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  t.equal((await post(emails, liveKey, {}, withKey('a'))).status, 422)
  t.equal((await post(emails, liveKey, '{', withKey('a'))).status, 400)
  const template = anEmail(domain, { text: undefined, templateId: 'tpl_1' })
  t.equal((await post(emails, liveKey, template, withKey('a'))).status, 422)
  t.equal((await post(emails, liveKey, anEmail(domain), withKey('a'))).status, 200)
})

t.test('a key has 1 to 255 printable ASCII characters', async (t) => {
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
      const response = await post(path, liveKey, body, withKey(key))
      const fields = { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] }
      isRefused(t, response, 'validation_error', fields, { name: JSON.stringify(key.slice(0, 9)) })
    }
  }
  const raw = await sendRaw(
    base,
    `POST /v1/emails HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\u0001b\r\nContent-Length: 2\r\n\r\n{}`,
  )
  t.strictSame([raw.status, raw.json.error.code], [422, 'validation_error'], 'a control character')
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('sends without a key make one message each', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const responses = await Promise.all([1, 2, 3].map(() => post(emails, liveKey, anEmail(domain))))
  t.equal(new Set(responses.map(({ json }) => json.id)).size, 3)
  t.equal(await messagesOf(organisation), 3)
})

t.test('a caller cannot use the internal key of a send without a key', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const first = await post(emails, liveKey, anEmail(domain))
  const requestId = first.headers.get('x-request-id')
  const second = await post(emails, liveKey, anEmail(domain), withKey(`request:${requestId}`))
  t.equal(second.headers.get('idempotent-replayed'), null)
  t.equal(await messagesOf(organisation), 2)
})

t.test('calls of one transaction have the same results as calls one after the other', async (t) => {
  const ours = await createOrganisation(sql)
  const theirs = await createOrganisation(sql)
  const one = anEmail(ours.domain, { subject: 'One' })
  const two = anEmail(ours.domain, { subject: 'Two' })
  const responses = await acceptTogether(sql, [
    { organisation: ours, key: 'a', email: one },
    { organisation: ours, key: 'a', email: one },
    { organisation: ours, key: 'a', email: two },
    { organisation: ours, mode: 'test', key: 'a', email: two },
    { organisation: theirs, key: 'a', email: anEmail(theirs.domain) },
    { organisation: ours, key: 'b', email: one },
    { organisation: ours, key: 'a', email: one },
  ])
  t.strictSame(
    responses.map(({ code, isReplayed }) => [code, isReplayed]),
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
  t.equal(responses[1]?.body, responses[0]?.body)
  t.equal(responses[6]?.body, responses[0]?.body)
  t.equal(await messagesOf(ours), 3)
  t.equal(await messagesOf(theirs), 1)
})

t.test('a refused call releases its key for the next call of the same transaction', async (t) => {
  const organisation = await createOrganisation(sql)
  const refused = anEmail('elsewhere.example')
  const responses = await acceptTogether(sql, [
    { organisation, key: 'a', email: refused },
    { organisation, key: 'a', email: anEmail(organisation.domain) },
    { organisation, key: 'a', email: refused },
  ])
  t.strictSame(
    responses.map(({ code }) => code),
    ['domain_not_verified', null, 'idempotency_conflict'],
  )
  t.equal(await messagesOf(organisation), 1)
})

t.test('all spellings of a path have the same fingerprint', async (t) => {
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
