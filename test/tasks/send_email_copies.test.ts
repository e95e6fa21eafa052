import t from 'tap'
import type { SendResult } from '../../src/providers/email.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anyJson, backlogOf, jobsOf, messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { aWorker, startTestService } from '../fixtures/service.ts'

// Only the API runs: a job is run by calling the task.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const call = serviceCall(url)

let made = 0

/** A queued marketing email to `count` recipients, and a worker whose provider can look up accepted copies. */
async function setUp(count: number) {
  made += 1
  const to = Array.from({ length: count }, (_, place) => `r${place}.${made}@c.example`)
  const id = await send(base, organisation, { class: 'marketing', to })
  /** Addresses whose copies arrived, once for each arrival. */
  const taken: string[] = []
  const answers = new Map<string, SendResult>()
  const provider = createStandIn()
  provider.onSend = async ({ recipients: [recipient = ''] }) => {
    // Real providers do not respond synchronously.
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

const settledRecipientsOf = async (id: string) => {
  const [row] = await sql<{ settledRecipients: string[] | null }[]>`
    select settled_recipients from app.bodies where message_id = core.decode_id('em', ${id})`
  return row?.settledRecipients?.toSorted() ?? null
}

const later: SendResult = { outcome: 'deferred', code: '421', text: 'Later.' }
const no: SendResult = { outcome: 'failed', code: '550', text: 'Not to them.' }

t.test('send_email: when all copies are accepted, the message is sent once', async (t) => {
  const { id, to, provider, taken, attemptSend } = await setUp(50)
  const before = await backlogOf(sql, organisation)
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1, provider: 'stand-in' })
  t.same(taken.toSorted(), to.toSorted())
  t.same(new Set(provider.emails.map(({ to }) => to.length)), new Set([1]))
  t.same(await typesOf(id), ['queued', 'sent'])
  t.equal(await settledRecipientsOf(id), null)
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('send_email: deferred copies are sent later, the others only once', async (t) => {
  const { id, to, taken, answers, attemptSend } = await setUp(30)
  for (const recipient of to.slice(14)) answers.set(recipient, later)
  await attemptSend()
  t.same(await settledRecipientsOf(id), to.slice(0, 14).toSorted())
  t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: null, sentAt: null })
  t.match((await timelineOf(sql, id)).at(-1), { type: 'deferred', detail: { code: '421' } })
  t.equal((await jobsOf(sql, id)).length, 1)

  for (const recipient of to.slice(14, 20)) answers.delete(recipient)
  await attemptSend()
  t.same(
    await settledRecipientsOf(id),
    to.slice(0, 20).toSorted(),
    'later recipients are added to the earlier ones',
  )
  answers.clear()
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 3 })
  t.same(taken.toSorted(), to.toSorted())
})

t.test(
  'send_email: after a crash, copies that the provider knows are not sent again',
  async (t) => {
    const { id, to, provider, taken, worker } = await setUp(30)
    const { promise: isStuck, resolve: stick } = Promise.withResolvers<void>()
    const take = provider.onSend
    provider.onSend = async (email) => {
      const answer = await take(email)
      // Some copies arrive without a response, some do not arrive, and no result is recorded.
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
    t.same(await messageOf(sql, id), sent, 'the late end of the first attempt changes nothing')
    t.same(taken.toSorted(), to.toSorted())
  },
)

t.test('send_email: ambiguous copies are looked up, settled copies are not', async (t) => {
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

t.test(
  'send_email: when all copies are refused permanently, the message fails and was never sent',
  async (t) => {
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
  },
)

t.test('send_email: a permanently refused copy fails for its recipient only', async (t) => {
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

t.test('send_email: a permanently refused copy is not retried with deferred copies', async (t) => {
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

t.test(
  'send_email: receipts of some copies do not stop the others and count in the end',
  async (t) => {
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
    t.same(taken, to, 'also after a recipient with a settled copy is suppressed')
    t.equal(await backlogOf(sql, organisation), before - 1)
  },
)

t.test('send_email: receipts that arrive before the end of the attempt count', async (t) => {
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

t.test('send_email: a recipient suppressed before a deferred copy gets nothing', async (t) => {
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

t.test(
  'send_email: a provider can refuse some recipients of an email without copies',
  async (t) => {
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
  },
)
