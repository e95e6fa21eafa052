import t from 'tap'
import { createSmsSandbox, isSandboxNumber } from '../../../src/providers/sandbox/sms.ts'
import { createDatabase, serviceCall } from '../../fixtures/database.ts'
import { get } from '../../fixtures/http.ts'
import { backlogOf, sendSms, type TimelineEvent } from '../../fixtures/messages.ts'
import { createPayer, smsOf, type TestOrganisation } from '../../fixtures/organisation.ts'
import { testSmsProvider } from '../../fixtures/providers.ts'
import { startTestService } from '../../fixtures/service.ts'
import { until } from '../../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api', 'worker'] })
const call = serviceCall(url)

const numberWith = (digit: number) => `+44770090012${digit}`

testSmsProvider('sandbox', async () => ({
  provider: createSmsSandbox(call),
  recipients: { accepted: numberWith(0), refused: numberWith(3), refusedByAll: numberWith(4) },
  async partsOf({ id }) {
    const rows = await sql<{ copy: number }[]>`
      select copy from app.sandbox_messages s, generate_series(1, s.attempts)
      where message_id = ${id} and kind = 'sms'`
    return rows.map(({ copy }) => copy)
  },
}))

/** Sends an SMS and returns it from the API once it has this status. */
async function outcome(
  organisation: TestOrganisation,
  overrides: Record<string, unknown>,
  status: string,
) {
  const id = await sendSms(base, organisation, overrides)
  return until(`${id} to be ${status}`, async () => {
    const { json } = await get(`${base}/v1/sms/${id}`, organisation.liveKey)
    return json.status === status && json
  })
}

const typesOf = ({ events }: { events: TimelineEvent[] }) => events.map(({ type }) => type)

t.test('sandbox: an SMS to any number without a simulated outcome is delivered', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  for (const to of [numberWith(0), numberWith(8), '+27821234561', '+447700901001']) {
    const sms = await outcome(organisation, { to }, 'delivered')
    t.same(typesOf(sms), ['queued', 'sent', 'delivered'])
    t.match(sms, { to, error: null, sentAt: String, deliveredAt: String, segments: 1 })
    t.match(sms.events[1].detail, { provider: 'sandbox', attempt: 1 })
    t.match(sms.events[2].detail, { part: 1, code: 'DELIVRD' })
    t.ok(sms.createdAt <= sms.sentAt && sms.sentAt <= sms.deliveredAt)
  }
  t.equal(await backlogOf(sql, organisation), 0)
})

t.test('sandbox: a long SMS has a receipt for each part', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  const sms = await outcome(organisation, smsOf(3, { to: numberWith(0) }), 'delivered')
  t.same(typesOf(sms), ['queued', 'sent', 'delivered', 'delivered', 'delivered'])
  t.same(
    sms.events
      .slice(2)
      .map(({ detail }: TimelineEvent) => detail.part)
      .sort(),
    [1, 2, 3],
  )
})

t.test('sandbox: last digit 1 is undelivered, 2 expires', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  const failed = await outcome(organisation, smsOf(2, { to: numberWith(1) }), 'failed')
  t.same(typesOf(failed), ['queued', 'sent', 'failed', 'failed'])
  t.match(failed, { sentAt: String, deliveredAt: null, error: { code: 'network_rejected' } })
  const expired = await outcome(organisation, { to: numberWith(2) }, 'expired')
  t.same(typesOf(expired), ['queued', 'sent', 'expired'])
  t.match(expired, { sentAt: String, deliveredAt: null, error: { code: 'expired' } })
})

t.test('sandbox: last digit 3 is refused permanently, 4 temporarily', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  const failed = await outcome(organisation, { to: numberWith(3) }, 'failed')
  t.same(typesOf(failed), ['queued', 'failed'])
  t.match(failed, { sentAt: null, error: { code: 'provider_rejected' } })

  const id = await sendSms(base, organisation, { to: numberWith(4) })
  const { json } = await until('a deferral', async () => {
    const answer = await get(`${base}/v1/sms/${id}`, organisation.liveKey)
    return answer.json.events.length > 1 && answer
  })
  t.match(json, { status: 'queued', error: null, sentAt: null })
  t.match(json.events[1], { type: 'deferred', detail: { code: 'ESME_RSYSERR', attempt: 1 } })
})

t.test('sandbox: last digit 5 is deferred once for two seconds and then delivered', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  const sms = await outcome(organisation, { to: numberWith(5) }, 'delivered')
  t.same(typesOf(sms), ['queued', 'deferred', 'sent', 'delivered'])
  t.ok(Date.parse(sms.sentAt) - Date.parse(sms.createdAt) >= 2000)
})

t.test('sandbox: last digit 6 replies STOP, which is confirmed, and 7 START', async (t) => {
  const organisation = await createPayer(sql, { included: 100 })
  const number = '+27820000001'
  await sql`select ops.approve_sender(${organisation.id}, ${number})`
  const [stops, starts] = [numberWith(6), numberWith(7)]
  await sql`select ops.record_consent(${organisation.id}, ${starts}, 'a form')`
  await sql`select ops.withdraw_consent(${organisation.id}, ${starts})`

  const sms = await outcome(organisation, { to: stops, senderId: number }, 'delivered')
  const { json } = await until('the opt-out', async () => {
    const answer = await get(`${base}/v1/sms/${sms.id}`, organisation.liveKey)
    return answer.json.events.length > 3 && answer
  })
  t.same(typesOf(json), ['queued', 'sent', 'delivered', 'opted_out'])
  t.match(json.events[3].detail, { word: 'STOP' })
  t.match(json, { status: 'delivered', error: null })
  const consentOf = async (phone: string) => {
    const [row] = await sql`select opted_out_by from app.consents where phone = ${phone}`
    return row?.optedOutBy
  }
  t.equal(await consentOf(stops), 'STOP')
  const confirmation = await until('the confirmation to be delivered', async () => {
    const [row] = await sql`
      select status from app.messages where tags = '{opt-out-confirmation}' and to_address = ${stops}`
    return row?.status === 'delivered' && row
  })
  t.ok(confirmation)

  await outcome(organisation, { to: starts, senderId: number }, 'delivered')
  await until('the consent to be restored', async () => (await consentOf(starts)) === null)
  t.equal(await consentOf(stops), 'STOP')
})

t.test('isSandboxNumber(): true for +447700900000 to +447700900999 only', async (t) => {
  for (const phone of ['+447700900000', '+447700900001', '+447700900999']) {
    t.ok(isSandboxNumber(phone), phone)
  }
  for (const phone of [
    ...['+447700899999', '+447700901000', '+4477009000000', '+44770090000', '+27821234567'],
    ...['447700900000', '+1447700900000', '+447700900000\n', ''],
  ]) {
    t.notOk(isSandboxNumber(phone), phone)
  }
})
