import t from 'tap'
import { createSmsProvider } from '../../../src/providers/index.ts'
import { createDatabase } from '../../fixtures/database.ts'
import { get } from '../../fixtures/http.ts'
import {
  AT_NOON,
  PROMOTION,
  sendSms,
  type TimelineEvent,
  untilShown,
} from '../../fixtures/messages.ts'
import { createPayer, smsOf } from '../../fixtures/organisation.ts'
import { startTestService } from '../../fixtures/service.ts'
import { type Smsc, startSmsc } from '../../fixtures/smpp.ts'
import { atTime, until } from '../../fixtures/time.ts'

const PHONE = '+27820000000'
const NUMBER = '+27110000000'

const receiptFor = (id: string, state = 'DELIVRD') => ({
  esm_class: 4,
  source_addr_ton: 1,
  source_addr: PHONE.slice(1),
  destination_addr: 'Postgram',
  short_message: `id:${id} sub:001 dlvrd:001 stat:${state} err:000 text:`,
})

const { url, sql } = await createDatabase()
await atTime(sql, AT_NOON, (tx) => tx`select api.make_partitions()`)

// Accepts each part with a hexadecimal ID; its receipts arrive before the response, with the ID in decimal.
const smsc: Smsc = await startSmsc(t, {
  async submit_sm(number, { to }) {
    if (to.endsWith('8')) return { status: 0x0b }
    const id = 0xab0000 + number
    const state = to.endsWith('9') ? 'UNDELIV' : 'DELIVRD'
    const receipt = { ...receiptFor(String(id), state), source_addr: to }
    t.equal(await smsc.deliver(receipt), 0)
    return { id: id.toString(16).toUpperCase() }
  },
})
const { base } = await startTestService(url, {
  clock: { 'postgram.now': AT_NOON },
  hasSandboxSms: true,
  createSmsProvider: (call, listener, log) =>
    createSmsProvider({
      sms: { provider: 'smpp', url: smsc.url, window: 10, rate: 1000, countryCode: '27' },
      call,
      listener,
      log,
    }),
})
const organisation = await createPayer(sql, { included: 1000 })
await sql`select ops.approve_sender(${organisation.id}, ${NUMBER})`
await sql`select ops.record_consent(${organisation.id}, ${PHONE}, 'a form')`

const once = (id: string, status: string) => untilShown(base, organisation, id, status)
const typesOf = ({ events }: { events: TimelineEvent[] }) => events.map(({ type }) => type)

t.test('smpp: an SMS is sent in parts and is delivered with the last one', async (t) => {
  const to = '+27820000001'
  const id = await sendSms(base, organisation, smsOf(3, { to }))
  const sms = await once(id, 'delivered')
  t.same(typesOf(sms), ['queued', 'sent', 'delivered', 'delivered', 'delivered'])
  t.match(sms.events[1].detail, { provider: 'smpp' })
  t.match(
    smsc.submits.map((submit) => [submit.to, submit.part, submit.total]),
    [1, 2, 3].map((part) => [to.slice(1), part, 3]),
  )
})

t.test('smpp: a refused SMS has name and number of the command status', async (t) => {
  const id = await sendSms(base, organisation, smsOf(1, { to: '+27820000008' }))
  const text = 'The network refuses it (ESME_RINVDSTADR, 0x0000000b).'
  const sms = await once(id, 'failed')
  t.match(sms.error, { code: 'provider_rejected', message: text })
  t.match(sms.events.at(-1), { type: 'failed', detail: { code: 'ESME_RINVDSTADR', text } })
  const reasons = await atTime(sql, AT_NOON, async (tx) => {
    await tx`select api.sum_status_changes()`
    return tx`select reason from ops.bounce_reasons where code = 'provider_rejected'`
  })
  t.same([...reasons], [{ reason: text }])
})

t.test('smpp: an SMS that the network cannot deliver is failed', async (t) => {
  const id = await sendSms(base, organisation, smsOf(1, { to: '+27820000009' }))
  t.match(await once(id, 'failed'), { error: { code: 'network_rejected' }, sentAt: String })
})

t.test('smpp: a sandbox message is not sent to the network', async (t) => {
  const before = smsc.submits.length
  const id = await sendSms(base, organisation, smsOf(1, { to: '+447700900000' }))
  t.match((await once(id, 'delivered')).events[1].detail, { provider: 'sandbox' })
  t.equal(smsc.submits.length, before)
})

// The only SMS to this phone: with a fixed clock no SMS is the last one.
t.test('smpp: STOP is confirmed and ends marketing to the phone', async (t) => {
  const promotion = { to: PHONE, senderId: NUMBER, class: 'marketing', body: PROMOTION }
  const id = await sendSms(base, organisation, promotion)
  await once(id, 'delivered')
  const before = smsc.submits.length
  const stop = {
    esm_class: 0,
    source_addr_ton: 1,
    source_addr: PHONE.slice(1),
    dest_addr_ton: 1,
    destination_addr: NUMBER.slice(1),
    short_message: ' “Stop”! ',
    data_coding: 8,
  }
  const statuses = await Promise.all([1, 2, 3].map(() => smsc.deliver(stop)))
  t.same(statuses, [0, 0, 0])
  const { json } = await get(`${base}/v1/sms/${id}`, organisation.liveKey)
  t.match(json.events.at(-1), { type: 'opted_out', detail: { word: 'STOP' } })
  await until('the confirmation', async () => smsc.submits.length > before)
  t.match(smsc.submits.at(-1), { from: NUMBER.slice(1), to: PHONE.slice(1), text: /opted out/ })

  const next = await once(await sendSms(base, organisation, promotion), 'rejected')
  t.match(next.error, { code: 'opted_out' })
  const transactional = await sendSms(base, organisation, smsOf(1, { to: PHONE }))
  await once(transactional, 'delivered')
  t.equal(smsc.submits.length, before + 2, 'one confirmation and the transactional SMS')

  const national = { source_addr_ton: 0, source_addr: `0${PHONE.slice(3)}` }
  t.equal(await smsc.deliver({ ...stop, ...national, short_message: 'start' }), 0)
  await once(await sendSms(base, organisation, promotion), 'delivered')
})
