import type { AttemptResult, Receipt } from '../../db/api.gen.ts'
import { type Fate, OWN_NUMBER, type Planned } from './plan.ts'
import { type Due, HOUR_MS, SECOND_MS, type World } from './world.ts'

/** What the simulated provider calls itself. */
const PROVIDER = 'sandbox'

/** Attempts the messages that wait, and plans what the provider reports of them. */
export async function attempt(world: World, now: number): Promise<void> {
  const due = [...world.waiting].filter(([, { from }]) => from <= now)
  const results: AttemptResult[] = []
  for (const channel of ['email', 'sms'] as const) {
    const ids = due.filter(([, { planned }]) => planned.channel === channel).map(([id]) => id)
    if (ids.length === 0) continue
    const started: readonly { id: string; attempt: number; segments?: number }[] =
      channel === 'email'
        ? await world.call('start_emails', { ids })
        : await world.call('start_sms', { ids })
    const attempts = new Map(started.map((one) => [one.id, one]))
    for (const id of ids) {
      const message = world.waiting.get(id)
      const one = attempts.get(id)
      // Rejected.
      if (!one || !message) world.waiting.delete(id)
      else results.push(attemptOne(world, now, message.planned, one))
    }
  }
  if (results.length > 0) await world.call('finish_messages', { results })
}

function attemptOne(
  world: World,
  now: number,
  planned: Planned,
  { id, attempt, segments = 1 }: { id: string; attempt: number; segments?: number },
): AttemptResult {
  const result = { id, job: 0, provider: PROVIDER }
  const isEmail = planned.channel === 'email'
  if (planned.fate === 'refused') {
    world.waiting.delete(id)
    const refusal = isEmail
      ? { code: '550 5.7.1', text: 'Message refused by the policy of the recipient.' }
      : { code: 'ESME_RINVDSTADR', text: 'Invalid destination address.' }
    return { ...result, outcome: 'failed', about: 'message', ...refusal }
  }
  if (planned.fate === 'deferred' && attempt === 1) {
    const refusal = isEmail
      ? { code: '451 4.7.1', text: 'Greylisted, try again later.' }
      : { code: 'ESME_RTHROTTLED', text: 'Throttling error.' }
    return { ...result, outcome: 'deferred', about: 'message', ...refusal }
  }
  world.waiting.delete(id)
  if (isEmail) {
    planReceipts(world, now, id, planned)
    return { ...result, outcome: 'sent' }
  }
  const parts = Array.from({ length: segments }, (_, n) => ({
    part: n + 1,
    network_id: `${id}.${n + 1}`,
  }))
  for (const { network_id } of parts) planSmsReceipts(world, now, network_id, planned)
  return { ...result, outcome: 'sent', parts }
}

/** After how many milliseconds receipts arrive, and what they say. */
type Report = { after: number; type: Receipt['type'] } & Pick<Receipt, 'code' | 'text' | 'is_hard'>

function emailReports(fate: Fate, quick: number): Report[] {
  const full = { code: '452 4.2.2', text: 'The mailbox is full.' }
  switch (fate) {
    case 'sent':
      return []
    case 'hard_bounce': {
      const text = 'The mailbox does not exist.'
      return [{ after: quick, type: 'bounced', code: '550 5.1.1', text, is_hard: true }]
    }
    case 'soft_bounce':
      return [
        { after: quick, type: 'deferred', ...full },
        { after: 4 * HOUR_MS, type: 'bounced', ...full, code: '552 5.2.2', is_hard: false },
      ]
    case 'complained': {
      const text = 'The recipient marked the message as spam.'
      return [
        { after: quick, type: 'delivered' },
        { after: 5 * HOUR_MS, type: 'complained', text },
      ]
    }
    default:
      return [{ after: quick, type: 'delivered' }]
  }
}

function planReceipts(world: World, now: number, id: string, { body, fate }: Planned): void {
  const recipient = String(body.to)
  // Most mail is delivered within seconds, some after minutes.
  const quick = Math.floor(700 + 20 * SECOND_MS * world.random() ** 3)
  for (const [n, { after, ...report }] of emailReports(fate, quick).entries()) {
    const at = now + after
    const names = { message_id: id, provider_event_id: `${PROVIDER}:${n}`, recipient }
    world.receipts.push({ at, value: { ...names, ...report, occurred_at: new Date(at) } })
  }
  if (fate === 'unsubscribed') {
    const entry = { organisation_id: world.uuid, email: recipient, message_id: id }
    world.later.push({ at: now + HOUR_MS, value: () => world.call('unsubscribe', entry) })
  }
}

function planSmsReceipts(
  world: World,
  now: number,
  network_id: string,
  { body, fate }: Planned,
): void {
  const at = now + Math.floor(1500 + 18 * SECOND_MS * world.random() ** 2)
  const report = {
    undelivered: { type: 'failed', code: 'UNDELIV', text: 'The number could not be reached.' },
    expired: { type: 'expired', code: 'EXPIRED', text: 'The phone was off for too long.' },
  }[fate as string] ?? { type: 'delivered', code: 'DELIVRD' }
  const phone = String(body.to)
  const names = { provider: PROVIDER, network_ids: [network_id], phone }
  world.smsReceipts.push({ at, value: { ...names, ...report, occurred_at: new Date(at) } })
  if (fate === 'stop') {
    world.later.push({ at: now + 20 * 60 * SECOND_MS, value: () => optOut(world, phone) })
  }
}

/** The phone replies STOP, and the confirmation waits to be sent. */
async function optOut({ call, sql, uuid, waiting }: World, phone: string): Promise<void> {
  const [{ now }] = await sql<[{ now: Date }]>`select core.now() as now`
  const reply = { provider: PROVIDER, from: phone, to: OWN_NUMBER, keyword: 'stop', word: 'STOP' }
  await call('record_keywords', { messages: [{ ...reply, received_at: now }] })
  const confirmations = await sql<{ id: string }[]>`
    select m.id from app.messages m
    where m.organisation_id = ${uuid} and m.id >= core.first_id_at(core.now()) and m.status = 'queued'
      and m.to_address = ${phone}`
  const planned: Planned = { channel: 'sms', fate: 'delivered', body: { to: phone } }
  for (const { id } of confirmations) waiting.set(id, { planned, from: now.getTime() })
}

/** Records what providers and people reported until now. */
export async function report(world: World, now: number): Promise<void> {
  const receipts = takeDue(world.receipts, now)
  if (receipts.length > 0) await world.call('finish_poll', { receipts })
  const smsReceipts = takeDue(world.smsReceipts, now)
  if (smsReceipts.length > 0) await world.call('record_sms_receipts', { receipts: smsReceipts })
  for (const work of takeDue(world.later, now)) await work()
}

function takeDue<Value>(list: Due<Value>[], now: number): Value[] {
  const due = list.filter(({ at }) => at <= now)
  list.splice(0, list.length, ...list.filter(({ at }) => at > now))
  return due.map(({ value }) => value)
}
