import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import type { SendResult } from '../../src/providers/email.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anyJson } from '../fixtures/json.ts'
import { backlogOf, jobsOf, messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { aWorker, startTestService } from '../fixtures/service.ts'

// Only the API runs: a job is run by calling the task.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const service = connect(url, { role: 'postgram_service' })
t.teardown(() => service.end())
const call = caller(service)

let made = 0

/** Marketing to that many, queued, and a worker whose provider knows what it took. */
async function setUp(count: number) {
  made += 1
  const to = Array.from({ length: count }, (_, place) => `r${place}.${made}@c.example`)
  const id = await send(base, organisation, { class: 'marketing', to })
  /** Addresses whose copies arrived, once for each time. */
  const taken: string[] = []
  const answers = new Map<string, SendResult>()
  const provider = createStandIn()
  provider.onSend = async ({ recipients: [recipient = ''] }) => {
    // Not in one go, as no provider answers.
    await new Promise(setImmediate)
    const answer = answers.get(recipient) ?? { outcome: 'sent' }
    if (answer.outcome === 'sent') taken.push(recipient)
    return answer
  }
  provider.onLookup = ({ recipients: [recipient = ''] }) => taken.includes(recipient)
  const worker = aWorker(sql, call, provider)
  return { id, to, provider, taken, answers, worker, attemptSend: () => worker.attemptSend(id) }
}

type Change = { type: string; recipient: string; code?: string; text?: string; is_hard?: boolean }

async function report(id: string, ...changes: Change[]) {
  const { id: message_id } = await messageOf(sql, id)
  const receipts = changes.map((change) => ({
    message_id,
    provider_event_id: `${change.type} ${change.recipient}`,
    occurred_at: new Date().toISOString(),
    ...change,
  }))
  await call('finish_poll', { receipts: anyJson(receipts) })
}

const typesOf = async (id: string) => (await timelineOf(sql, id)).map(({ type }) => type)

const handedOverOf = async (id: string) => {
  const [row] = await sql<{ settledRecipients: string[] | null }[]>`
    select settled_recipients from app.bodies where message_id = core.decode_id('em', ${id})`
  return row?.settledRecipients?.toSorted() ?? null
}

const later: SendResult = { outcome: 'deferred', code: '421', text: 'Later.' }
const no: SendResult = { outcome: 'failed', code: '550', text: 'Not to them.' }

t.test('all copies taken, the message is sent, once', async (t) => {
  const { id, to, provider, taken, attemptSend } = await setUp(50)
  const before = await backlogOf(sql, organisation)
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1, provider: 'stand-in' })
  t.same(taken.toSorted(), to.toSorted())
  t.same(new Set(provider.emails.map(({ to }) => to.length)), new Set([1]))
  t.same(await typesOf(id), ['queued', 'sent'])
  t.equal(await handedOverOf(id), null)
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('copies put off half-way go out later, and the others only once', async (t) => {
  const { id, to, taken, answers, attemptSend } = await setUp(30)
  for (const recipient of to.slice(14)) answers.set(recipient, later)
  await attemptSend()
  t.same(await handedOverOf(id), to.slice(0, 14).toSorted())
  t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: null, sentAt: null })
  t.match((await timelineOf(sql, id)).at(-1), { type: 'deferred', detail: { code: '421' } })
  t.equal((await jobsOf(sql, id)).length, 1)

  for (const recipient of to.slice(14, 20)) answers.delete(recipient)
  await attemptSend()
  t.same(await handedOverOf(id), to.slice(0, 20).toSorted(), 'it adds to what was settled before')
  answers.clear()
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 3 })
  t.same(taken.toSorted(), to.toSorted())
})

t.test('a crash in the middle of the copies doubles none that the provider knows', async (t) => {
  const { id, to, provider, taken, worker } = await setUp(30)
  const { promise: isStuck, resolve: stick } = Promise.withResolvers<void>()
  const take = provider.onSend
  provider.onSend = async (email) => {
    const answer = await take(email)
    // Some arrive and get no answer, some do not even arrive, and nobody notes those that came before.
    if (taken.length < 14) return answer
    if (taken.length > 17) taken.pop()
    else if (taken.length === 17) stick()
    return new Promise<never>(() => undefined)
  }
  const process = new AbortController()
  const cutOff = worker.attemptSend(id, process.signal)
  await isStuck
  provider.onSend = take
  await aWorker(sql, call, provider).attemptSend(id)
  const sent = await messageOf(sql, id)
  t.match(sent, { status: 'sent', attempts: 2, attemptStartedAt: null })
  t.same(taken.toSorted(), to.toSorted())

  process.abort()
  await cutOff
  t.same(await messageOf(sql, id), sent, 'what ends late changes nothing')
  t.same(taken.toSorted(), to.toSorted())
})

t.test('copies of which nobody knows are looked up, those that are settled are not', async (t) => {
  const { id, to, provider, taken, answers, attemptSend } = await setUp(3)
  answers.set(to[1] ?? '', { outcome: 'ambiguous', text: 'Reset.' })
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: Date })
  t.match((await timelineOf(sql, id)).at(-1), { type: 'deferred', detail: { text: 'Reset.' } })
  taken.push(to[1] ?? '')
  await attemptSend()
  t.equal(provider.asked.length, 1)
  t.equal(provider.handed.length, 3)
  t.match(await messageOf(sql, id), { status: 'sent' })
})

t.test('all copies refused for good, the message has failed and never left', async (t) => {
  const { id, to, answers, attemptSend } = await setUp(3)
  const before = await backlogOf(sql, organisation)
  for (const recipient of to) answers.set(recipient, no)
  await attemptSend()
  t.match(await messageOf(sql, id), {
    status: 'failed',
    sentAt: null,
    errorCode: 'provider_rejected',
    errorMessage: 'Not to them.',
  })
  t.same(await typesOf(id), ['queued', 'failed'])
  t.equal(await backlogOf(sql, organisation), before - 1)

  answers.clear()
  await sql`select ops.retry_message(${id})`
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', errorCode: null }, 'it can be retried')
})

t.test('one copy refused for good, its recipient has failed and the others have it', async (t) => {
  const { id, to, taken, answers, attemptSend } = await setUp(3)
  const before = await backlogOf(sql, organisation)
  answers.set(to[1] ?? '', no)
  await attemptSend()
  t.match(await messageOf(sql, id), {
    status: 'failed',
    sentAt: Date,
    errorCode: 'provider_rejected',
    errorMessage: 'Not to them.',
  })
  t.same(taken, [to[0], to[2]])
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'sent' },
    { type: 'failed', detail: { recipient: to[1], code: '550', text: 'Not to them.' } },
  ])
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('a copy refused for good is not tried again while others are', async (t) => {
  const { id, to, provider, answers, attemptSend } = await setUp(3)
  answers.set(to[0] ?? '', no)
  answers.set(to[2] ?? '', later)
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'queued', sentAt: null, errorCode: null })
  t.same((await typesOf(id)).toSorted(), ['deferred', 'failed', 'queued'])
  answers.clear()
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_rejected' })
  t.same(
    provider.emails.map(({ copy }) => copy),
    [1, 2, 3, 3],
  )
  t.equal((await typesOf(id)).filter((type) => type === 'failed').length, 1)
})

t.test('receipts of some copies do not stop the others, and count in the end', async (t) => {
  const { id, to, taken, answers, attemptSend } = await setUp(3)
  const before = await backlogOf(sql, organisation)
  const [first = '', second = '', third = ''] = to
  answers.set(third, later)
  await attemptSend()
  await report(id, { type: 'delivered', recipient: first })
  await report(id, { type: 'bounced', recipient: second, text: 'Gone.', is_hard: true })
  t.match(await messageOf(sql, id), { status: 'queued', sentAt: null })
  t.equal(await backlogOf(sql, organisation), before)

  answers.clear()
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'bounced', sentAt: Date, errorMessage: 'Gone.' })
  t.same(taken, to, 'though a recipient that has it is suppressed by now')
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('receipts that were all faster than the end of the hand-over count', async (t) => {
  const { id, to, provider, attemptSend } = await setUp(2)
  const take = provider.onSend
  provider.onSend = async (email) => {
    const answer = await take(email)
    await report(id, { type: 'delivered', recipient: email.recipients[0] ?? '' })
    return answer
  }
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'delivered', sentAt: Date, deliveredAt: Date })
  t.same(await typesOf(id), ['queued', 'sent', ...to.map(() => 'delivered')])
})

t.test('whose copy is still to come and who was suppressed since gets nothing', async (t) => {
  const { id, to, taken, answers, attemptSend } = await setUp(2)
  const [first = '', second = ''] = to
  answers.set(second, later)
  await attemptSend()
  answers.clear()
  await sql`select ops.suppress_globally(${second})`
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'recipient_suppressed' })
  t.same(taken, [first])
})

t.test('a provider may refuse some recipients of an email that goes out whole', async (t) => {
  const to = ['whole.1@c.example', 'Whole.2@c.example']
  const id = await send(base, organisation, { to })
  const provider = createStandIn()
  provider.onSend = () => ({
    outcome: 'sent',
    refused: [{ recipient: 'whole.2@c.example', code: '550', text: 'Nobody there.' }],
  })
  await aWorker(sql, call, provider).attemptSend(id)
  t.match(await messageOf(sql, id), {
    status: 'failed',
    sentAt: Date,
    errorCode: 'provider_rejected',
    errorMessage: 'Nobody there.',
  })
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'sent' },
    { type: 'failed', detail: { recipient: 'whole.2@c.example', code: '550' } },
  ])
})
