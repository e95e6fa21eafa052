import t from 'tap'
import { createSandbox } from '../../../src/providers/sandbox/email.ts'
import { createSmsSandbox, isSandboxNumber } from '../../../src/providers/sandbox/sms.ts'
import { createDatabase, serviceCall } from '../../fixtures/database.ts'
import { anEmail, get, post } from '../../fixtures/http.ts'
import {
  backlogOf,
  messageOf,
  send,
  sendSms,
  type TimelineEvent,
  untilShown,
} from '../../fixtures/messages.ts'
import {
  createOrganisation,
  createPayer,
  listOf,
  smsOf,
  type TestOrganisation,
} from '../../fixtures/organisation.ts'
import { emailTo, smsTo, testProvider, testSmsProvider } from '../../fixtures/providers.ts'
import { takenBySandbox } from '../../fixtures/sandbox.ts'
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
      select attempts from ${takenBySandbox(sql)} s where message_id = ${id} and copy = ${copy ?? 0}`
    return row?.attempts ?? 0
  },
  can: { lookUp: true, keepKeys: true, tellUnknownDomains: false },
  publish: async () => undefined,
}))

const numberWith = (digit: number) => `+44770090012${digit}`

testSmsProvider('sandbox', async () => ({
  provider: createSmsSandbox(call),
  recipients: { accepted: numberWith(0), refused: numberWith(3), refusedByAll: numberWith(4) },
  async partsOf({ id }) {
    const rows = await sql<{ copy: number }[]>`
      select copy from ${takenBySandbox(sql)} s, generate_series(1, s.attempts)
      where message_id = ${id} and copy > 0`
    return rows.map(({ copy }) => copy)
  },
}))

const at = (name: string) => `${name}@sandbox.postgram.test`

/** Sends an email or an SMS and returns it from the API once it has this status. */
async function outcome(
  organisation: TestOrganisation,
  overrides: Record<string, unknown> & { to: string | string[] },
  status: string,
) {
  const isSms = String(overrides.to).startsWith('+')
  const id = await (isSms ? sendSms : send)(base, organisation, overrides)
  return untilShown(base, organisation, id, status)
}

const typesOf = ({ events }: { events: TimelineEvent[] }) => events.map(({ type }) => type)

const suppressionsOf = async (organisation: TestOrganisation) =>
  (await listOf(sql, organisation)).map(({ email, reason }) => `${email}: ${reason}`)

const globalSuppression = async (email: string) => {
  const rows = await sql`select from app.hard_bounces where email = ${email}`
  return rows.length === 1
}

/** What email and SMS have in common: recipients by what the sandbox does with a message to them. */
const channels = {
  email: {
    delivered: [at('delivered'), at('delivered+7'), at('anyone'), 'bounce@example.com'],
    receipt: (recipient: string): object => ({ recipient }),
    takeAgain: (to: string, id: string) => createSandbox(call).send(emailTo(to, { id })),
    slow: at('slow+1'),
    refused: at('reject+1'),
    refusal: '550 5.7.1',
    unavailable: at('unavailable+1'),
    deferral: '421 4.3.2',
  },
  SMS: {
    delivered: [numberWith(0), numberWith(8), '+27821234561', '+447700901001'],
    receipt: (): object => ({ part: 1, code: 'DELIVRD' }),
    takeAgain: (to: string, id: string) => createSmsSandbox(call).send(smsTo(to, { id })),
    slow: numberWith(5),
    refused: numberWith(3),
    refusal: 'ESME_RINVDSTADR',
    unavailable: numberWith(4),
    deferral: 'ESME_RSYSERR',
  },
}

for (const [name, channel] of Object.entries(channels)) {
  t.test(`sandbox: ${name} to a recipient without a simulated outcome is delivered`, async (t) => {
    const organisation = await createPayer(sql, { included: 100 })
    for (const to of channel.delivered) {
      const message = await outcome(organisation, { to }, 'delivered')
      t.same(typesOf(message), ['queued', 'sent', 'delivered'])
      t.match(message, { to, error: null, sentAt: String, deliveredAt: String })
      t.match(message.events[1].detail, { provider: 'sandbox', attempt: 1 })
      t.match(message.events[2].detail, channel.receipt(to))
      t.ok(message.createdAt <= message.sentAt && message.sentAt <= message.deliveredAt)
    }
    t.same(await suppressionsOf(organisation), [])
    t.equal(await backlogOf(sql, organisation), 0)
  })

  t.test(`sandbox: ${name} that is taken twice gets each receipt once`, async (t) => {
    const organisation = await createPayer(sql, { included: 100 })
    const to = channel.delivered[0] ?? ''
    const { id } = await outcome(organisation, { to }, 'delivered')
    const { id: uuid } = await messageOf(sql, id)
    await channel.takeAgain(to, uuid)
    await until('its reports', async () => {
      const left = await sql`select from app.sandbox_reports`
      return left.length === 0
    })
    const taken =
      await sql`select attempts from ${takenBySandbox(sql)} s where message_id = ${uuid}`
    t.same([...taken], [{ attempts: 2 }])
    const message = await untilShown(base, organisation, id, 'delivered')
    t.same(typesOf(message), ['queued', 'sent', 'delivered'])
  })

  t.test(`sandbox: slow ${name} is deferred once for two seconds, then delivered`, async (t) => {
    const organisation = await createPayer(sql, { included: 100 })
    const message = await outcome(organisation, { to: channel.slow }, 'delivered')
    t.same(typesOf(message), ['queued', 'deferred', 'sent', 'delivered'])
    t.ok(Date.parse(message.sentAt) - Date.parse(message.createdAt) >= 2000)
  })

  t.test(`sandbox: refused ${name} fails permanently`, async (t) => {
    const organisation = await createPayer(sql, { included: 100 })
    const message = await outcome(organisation, { to: channel.refused }, 'failed')
    t.same(typesOf(message), ['queued', 'failed'])
    const error = { code: 'provider_rejected', message: 'The sandbox rejects this.' }
    t.match(message, { sentAt: null, error })
    t.match(message.events[1].detail, { code: channel.refusal, attempt: 1 })
    t.same(await suppressionsOf(organisation), [])
  })

  t.test(`sandbox: ${name} is deferred while the recipient is unavailable`, async (t) => {
    const organisation = await createPayer(sql, { included: 100 })
    const { id } = await outcome(organisation, { to: channel.unavailable }, 'queued')
    const message = await until('a deferral', async () => {
      const shown = await untilShown(base, organisation, id, 'queued')
      return shown.events.length > 1 && shown
    })
    t.match(message, { error: null, sentAt: null })
    t.match(message.events[1], { type: 'deferred', detail: { code: channel.deferral, attempt: 1 } })
  })
}

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
  t.same(await suppressionsOf(organisation), [`${at('bounce+1')}: hard_bounce`])
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
  t.same(await suppressionsOf(organisation), [`${to}: complaint`])
  t.notOk(await globalSuppression(to))
  const { liveKey, domain } = organisation
  const next = await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to }))
  t.match(next, { status: 422, json: { error: { code: 'recipient_suppressed' } } })
  t.ok(await send(base, other, { to }))
})

t.test('slow@ takes no place of a worker while it waits', async (t) => {
  const sandbox = createSandbox(call)
  const email = emailTo(at('slow+2'))
  // The delay is part of the outcome, so the attempt has ended.
  t.match(await sandbox.send(email), { outcome: 'deferred', retry_in_ms: 2000 })
  t.equal(await sandbox.lookup(email), false)
  t.same(await sandbox.send({ ...email, attempt: 2 }), { outcome: 'sent' })
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
  t.same(await suppressionsOf(organisation), [`${bad}: hard_bounce`])
})

t.test('sandbox: an email to several is complained with the first complaint', async (t) => {
  const organisation = await createOrganisation(sql)
  const to = [at('delivered+a'), at('complaint+several')]
  const message = await outcome(organisation, { to }, 'complained')
  t.same(await suppressionsOf(organisation), [`${at('complaint+several')}: complaint`])
  t.match(message, { error: null, deliveredAt: String })
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
