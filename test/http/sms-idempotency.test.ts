import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
/** Another process in front of the same database. */
const { base: otherBase } = await startTestService(url, { roles: ['api'] })
const sms = `${base}/v1/sms`
const batches = `${base}/v1/sms/batch`
const emails = `${base}/v1/emails`

const withKey = (key: string) => ({ 'Idempotency-Key': key })

const messagesOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select count(*)::integer as count from app.messages
    where organisation_id = core.decode_id('org', ${id})`
  return row?.count
}

t.test('a repeated SMS is answered byte for byte, and paid once', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 2 })
  await sql`select ops.grant_credits(${organisation.id}, 5, 'paid')`
  const body = anSms({ body: 'x'.repeat(307) })
  const first = await post(sms, organisation.liveKey, body, withKey('a'))
  t.match(first.json, { segments: 3, credits: 1 })
  const before = await traces(sql)
  for (let n = 0; n < 3; n++) {
    const again = await post(sms, organisation.liveKey, body, withKey('a'))
    t.strictSame([again.status, again.text], [200, first.text])
    t.equal(again.headers.get('idempotent-replayed'), 'true')
  }
  t.strictSame(await traces(sql), before)
})

t.test('a batch of SMS is replayed with its errors, though there are credits now', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 1 })
  const batch = { messages: [anSms(), {}, anSms()] }
  const first = await post(batches, organisation.liveKey, batch, withKey('a'))
  t.match(first.json.results, [{ ok: true }, { ok: false }, { ok: false }])
  await sql`select ops.grant_credits(${organisation.id}, 5, 'paid')`
  const again = await post(batches, organisation.liveKey, batch, withKey('a'))
  t.equal(again.text, first.text)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(await messagesOf(organisation), 1)
})

t.test(
  'a key is refused with another body, at another path, or in the other channel',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    await post(sms, liveKey, anSms(), withKey('a'))
    await post(emails, liveKey, anEmail(domain), withKey('b'))
    const before = await traces(sql)
    for (const [path, body, key] of [
      [sms, anSms({ body: 'Another' }), 'a'],
      [sms, anSms({ tags: [] }), 'a'],
      [batches, { messages: [anSms()] }, 'a'],
      [emails, anEmail(domain), 'a'],
      [`${emails}/batch`, { emails: [anEmail(domain)] }, 'a'],
      [sms, anSms(), 'b'],
      [batches, { messages: [anSms()] }, 'b'],
    ] as const) {
      const answer = await post(path, liveKey, body, withKey(key))
      isRefused(t, answer, 'idempotency_conflict', undefined, { name: `${path} with ${key}` })
    }
    t.strictSame(await traces(sql), before, 'nothing was left behind')
  },
)

t.test(
  'of both channels with one key at once, one is accepted and the other refused',
  async (t) => {
    for (let round = 0; round < 10; round++) {
      const organisation = await createOrganisation(sql)
      const { liveKey, domain } = organisation
      const answers = await Promise.all([
        post(sms, liveKey, anSms(), withKey('a')),
        post(`${otherBase}/v1/emails`, liveKey, anEmail(domain), withKey('a')),
        post(emails, liveKey, anEmail(domain), withKey('a')),
        post(`${otherBase}/v1/sms`, liveKey, anSms(), withKey('a')),
      ])
      t.strictSame(answers.map(({ status }) => status).sort(), [200, 200, 409, 409])
      t.equal(new Set(answers.filter((one) => one.status === 200).map(({ text }) => text)).size, 1)
      t.equal(await messagesOf(organisation), 1)
    }
  },
)

t.test('a refused SMS releases its key, and the retry proceeds', async (t) => {
  const obstacles: Record<string, [number, (id: string) => unknown, (id: string) => unknown]> = {
    credits: [
      402,
      (id) => sql`
        update app.allowances set sms_used = 100 where organisation_id = core.decode_id('org', ${id})`,
      (id) => sql`select ops.grant_credits(${id}, 1, 'paid')`,
    ],
    sender: [
      422,
      () => undefined,
      (id) => sql`
        insert into app.senders (organisation_id, sender, approved_at)
        values (core.decode_id('org', ${id}), 'Acme', now())`,
    ],
    paused: [
      423,
      (id) => sql`select ops.pause(${id}, 'complaints')`,
      (id) => sql`select ops.resume(${id})`,
    ],
  }
  for (const [name, [status, put, remove]] of Object.entries(obstacles)) {
    const organisation = await createOrganisation(sql)
    const { id, liveKey } = organisation
    const body = anSms(name === 'sender' ? { senderId: 'Acme' } : {})
    await put(id)
    const before = await traces(sql)
    t.equal((await post(sms, liveKey, body, withKey('a'))).status, status, name)
    t.strictSame(await traces(sql), before, 'nothing was left behind')
    await remove(id)
    const retry = await post(sms, liveKey, body, withKey('a'))
    t.equal(retry.status, 200, `${name}, once it is out of the way`)
    t.equal(retry.headers.get('idempotent-replayed'), null)
    t.equal(await messagesOf(organisation), 1)
  }
})
