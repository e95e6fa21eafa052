import t from 'tap'
import { createSandbox } from '../../../src/providers/sandbox/email.ts'
import { createDatabase, serviceCall } from '../../fixtures/database.ts'
import { anEmail, get, post } from '../../fixtures/http.ts'
import { backlogOf, send, type TimelineEvent } from '../../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../../fixtures/organisation.ts'
import { emailTo, testProvider } from '../../fixtures/providers.ts'
import { startTestService } from '../../fixtures/service.ts'
import { until } from '../../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api', 'worker'] })
const call = serviceCall(url)

testProvider('sandbox', async () => ({
  provider: createSandbox(call),
  recipients: {
    accepted: 'delivered@sandbox.postgram.test',
    refused: 'reject@sandbox.postgram.test',
    refusedByAll: 'unavailable@sandbox.postgram.test',
    refusedTemporarily: 'slow@sandbox.postgram.test',
  },
  async attemptsOf({ id, copy }) {
    const [row] = await sql`
      select attempts from app.sandbox_messages where message_id = ${id} and copy = ${copy ?? 0}`
    return row?.attempts ?? 0
  },
  can: { lookUp: true, keepKeys: true, tellUnknownDomains: false },
  publish: async () => undefined,
}))

const at = (name: string) => `${name}@sandbox.postgram.test`

/** Sends an email and returns it from the API once it has this status. */
async function outcome(
  organisation: TestOrganisation,
  overrides: Record<string, unknown>,
  status: string,
) {
  const id = await send(base, organisation, overrides)
  return until(`${id} to be ${status}`, async () => {
    const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
    return json.status === status && json
  })
}

const typesOf = ({ events }: { events: TimelineEvent[] }) => events.map(({ type }) => type)

const suppressionsOf = ({ id }: TestOrganisation) => sql<{ email: string; reason: string }[]>`
  select email, reason from app.suppressions
  where organisation_id = core.decode_id('org', ${id}) order by email`

const globalSuppression = async (email: string) => {
  const rows = await sql`select from app.hard_bounces where email = ${email}`
  return rows.length === 1
}

t.test('sandbox: delivered@ and any address elsewhere are delivered', async (t) => {
  const organisation = await createOrganisation(sql)
  for (const to of [at('delivered'), at('delivered+7'), at('anyone'), 'bounce@example.com']) {
    const message = await outcome(organisation, { to }, 'delivered')
    t.same(typesOf(message), ['queued', 'sent', 'delivered'])
    t.match(message, { to, error: null, sentAt: String, deliveredAt: String })
    t.match(message.events[1].detail, { provider: 'sandbox', attempt: 1 })
    t.match(message.events[2].detail, { recipient: to })
    t.ok(message.createdAt <= message.sentAt && message.sentAt <= message.deliveredAt)
  }
  t.same(await suppressionsOf(organisation), [])
  t.equal(await backlogOf(sql, organisation), 0)
})

t.test('sandbox: bounce@ is a hard bounce and is suppressed for every organisation', async (t) => {
  const [organisation, other] = [await createOrganisation(sql), await createOrganisation(sql)]
  const to = at('Bounce+1')
  const message = await outcome(organisation, { to }, 'bounced')
  t.same(typesOf(message), ['queued', 'sent', 'bounced'])
  t.match(message, {
    error: { code: 'hard_bounce', message: 'The mailbox does not exist.' },
    deliveredAt: null,
  })
  t.match(message.events[2].detail, { recipient: at('bounce+1'), code: '550 5.1.1', isHard: true })
  t.same(await suppressionsOf(organisation), [{ email: at('bounce+1'), reason: 'hard_bounce' }])
  t.same(await suppressionsOf(other), [])
  t.ok(await globalSuppression(at('bounce+1')))

  for (const { domain, liveKey } of [organisation, other]) {
    const next = await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to }))
    t.match(next, { status: 422, json: { error: { code: 'recipient_suppressed' } } })
  }
  t.ok(
    await send(base, organisation, { to: at('bounce+2') }),
    'another address of the sandbox is not suppressed',
  )
})

t.test('sandbox: softbounce@ is a soft bounce and is not suppressed', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await outcome(organisation, { to: at('softbounce+1') }, 'bounced')
  t.same(typesOf(message), ['queued', 'sent', 'deferred', 'bounced'])
  t.match(message.error, { code: 'soft_bounce', message: 'The mailbox is full.' })
  t.same(await suppressionsOf(organisation), [])
  t.notOk(await globalSuppression(at('softbounce+1')))
  t.match(await outcome(organisation, { to: at('softbounce+1') }, 'bounced'), { error: {} })
})

t.test('sandbox: complaint@ complains and is suppressed for its sender only', async (t) => {
  const [organisation, other] = [await createOrganisation(sql), await createOrganisation(sql)]
  const to = at('complaint')
  const message = await outcome(organisation, { to }, 'complained')
  t.same(typesOf(message), ['queued', 'sent', 'delivered', 'complained'])
  t.match(message, { deliveredAt: String })
  t.same(await suppressionsOf(organisation), [{ email: to, reason: 'complaint' }])
  t.notOk(await globalSuppression(to))
  const { liveKey, domain } = organisation
  const next = await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to }))
  t.match(next, { status: 422, json: { error: { code: 'recipient_suppressed' } } })
  t.ok(await send(base, other, { to }))
})

t.test('sandbox: slow@ is deferred once for two seconds and then delivered', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await outcome(organisation, { to: at('slow+1') }, 'delivered')
  t.same(typesOf(message), ['queued', 'deferred', 'sent', 'delivered'])
  t.ok(Date.parse(message.sentAt) - Date.parse(message.createdAt) >= 2000)
})

t.test('slow@ takes no place of a worker while it waits', async (t) => {
  const sandbox = createSandbox(call)
  const email = emailTo(at('slow+2'))
  // The delay is part of the outcome, so the attempt has ended.
  t.match(await sandbox.send(email), { outcome: 'deferred', retry_in_ms: 2000 })
  t.equal(await sandbox.lookup(email), false)
  t.same(await sandbox.send({ ...email, attempt: 2 }), { outcome: 'sent' })
})

t.test('sandbox: reject@ is refused permanently', async (t) => {
  const organisation = await createOrganisation(sql)
  const message = await outcome(organisation, { to: at('reject+1') }, 'failed')
  t.same(typesOf(message), ['queued', 'failed'])
  t.match(message, { sentAt: null, error: { code: 'provider_rejected' } })
  t.same(await suppressionsOf(organisation), [], 'a refused email suppresses no address')
})

t.test('sandbox: unavailable@ is refused temporarily', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(base, organisation, { to: at('unavailable+1') })
  const { json } = await until('a deferral', async () => {
    const answer = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
    return answer.json.events.length > 1 && answer
  })
  t.match(json, { status: 'queued', error: null, sentAt: null })
  t.match(json.events[1], { type: 'deferred', detail: { code: '421 4.3.2', attempt: 1 } })
})

t.test('sandbox: an email to several is delivered once all recipients are', async (t) => {
  const organisation = await createOrganisation(sql)
  const to = [at('delivered+a'), `Bee <${at('delivered+b')}>`]
  const all = { to, cc: [at('delivered+c')], bcc: [at('delivered+d'), at('DELIVERED+A')] }
  const message = await outcome(organisation, all, 'delivered')
  t.same(typesOf(message), ['queued', 'sent', ...Array(4).fill('delivered')])
  t.same(
    message.events.slice(2).map(({ detail }: TimelineEvent) => detail.recipient),
    ['a', 'b', 'c', 'd'].map((letter) => at(`delivered+${letter}`)),
  )
  t.equal(message.deliveredAt, message.events.at(-1).occurredAt, 'the time of the last delivery')
})

t.test('sandbox: an email to several is bounced as soon as one recipient is', async (t) => {
  const organisation = await createOrganisation(sql)
  const bad = at('bounce+several')
  const to = [at('delivered+a'), at('delivered+b')]
  const message = await outcome(organisation, { to, cc: [bad] }, 'bounced')
  t.same(typesOf(message), ['queued', 'sent', 'delivered', 'delivered', 'bounced'])
  t.match(message.events.at(-1).detail, { recipient: bad })
  t.match(message, { error: { code: 'hard_bounce' }, deliveredAt: null })
  t.same(await suppressionsOf(organisation), [{ email: bad, reason: 'hard_bounce' }])
})

t.test('sandbox: an email to several is complained with the first complaint', async (t) => {
  const organisation = await createOrganisation(sql)
  const to = [at('delivered+a'), at('complaint+several')]
  const message = await outcome(organisation, { to }, 'complained')
  t.same(await suppressionsOf(organisation), [
    { email: at('complaint+several'), reason: 'complaint' },
  ])
  t.match(message, { error: null, deliveredAt: String })
})
