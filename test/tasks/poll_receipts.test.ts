import t from 'tap'
import type { SentEmail } from '../../src/db/api.gen.ts'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { ProviderUnavailable, type Receipt } from '../../src/providers/email.ts'
import { receiptOf } from '../../src/providers/mailgun/callback.ts'
import { messageIdOf } from '../../src/providers/message-id.ts'
import pollReceipts from '../../tasks/poll_receipts.ts'
import { createDatabase, restFailedJobs, serviceCall } from '../fixtures/database.ts'
import { get, post } from '../fixtures/http.ts'
import {
  callbackOf,
  createReporter,
  deliveryStatus,
  failure,
  type MailgunEvent,
  mailgunEvent,
  type SentMessage,
  sendAndHandOver,
} from '../fixtures/mailgun.ts'
import { messageOf, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { runTask, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
/** A provider that makes callbacks. */
const mailgun = createStandIn({ name: 'mailgun', readCallback: () => undefined })
const organisation = await createOrganisation(sql)
const tryAgain = await restFailedJobs(sql)

/** The provider's events by message, and what it waits for before it responds. */
const known = new Map<string, MailgunEvent[]>()
let asked: SentEmail[] = []
let beforeResponse: (email: SentEmail) => Promise<void> = async () => undefined

const createProvider = () =>
  createReporter({
    async receiptsOf(email) {
      asked.push(email)
      await beforeResponse(email)
      const receipts = (known.get(email.id) ?? []).map(receiptOf)
      return receipts.filter((receipt): receipt is Receipt => receipt !== null)
    },
  })

const options = {
  roles: ['api', 'worker'],
  metricsPort: 0,
  createEmailProvider: createProvider,
} as const
const { base, metricsAddress } = await startTestService(url, options)
const { metricsAddress: second } = await startTestService(url, { ...options, roles: ['worker'] })

const call = serviceCall(url)

t.beforeEach(() => {
  asked = []
  known.clear()
  beforeResponse = async () => undefined
})

const sendEmails = (count: number, overrides: Record<string, unknown> = {}) =>
  sendAndHandOver(
    { base, sql },
    organisation,
    Array.from({ length: count }, () => overrides),
  )

function delivered({ uuid, messageId }: SentMessage): MailgunEvent {
  const event = mailgunEvent('delivered', messageId, {
    'delivery-status': deliveryStatus(250, 'OK'),
  })
  known.set(uuid, [event])
  return event
}

/** Enqueues a poll of some messages, as the clock does. */
const ask = (messages: { uuid: string }[]) => sql`
  select graphile_worker.add_job(
    'poll_receipts', ${sql.json({ ids: messages.map(({ uuid }) => uuid) })}::json,
    queue_name := 'poll_receipts', priority := 100)`

const pollJobs = () => sql<{ attempts: number; lastError: string | null }[]>`
  select j.attempts, j.last_error from graphile_worker._private_jobs j
  join graphile_worker._private_tasks k on k.id = j.task_id
  where k.identifier = 'poll_receipts' order by j.id`

const noJobs = () => until('all polls', async () => (await pollJobs()).length === 0)

t.test('a poll records a delivery whose callback was lost', async (t) => {
  const enqueue = (by = call) => runTask('enqueue-receipt-polls', { call: by, provider: mailgun })
  await enqueue()
  const [lost, silent] = (await sendEmails(2)) as [SentMessage, SentMessage]
  const event = delivered(lost)
  await enqueue()
  t.same(await pollJobs(), [])

  const later = connect(url, {
    role: 'postgram_service',
    clock: { 'postgram.shift': '10 minutes 30 seconds' },
  })
  await enqueue(caller(later))
  await later.end()
  await until('delivery', async () => (await messageOf(sql, lost.id)).status === 'delivered')
  await noJobs()
  t.match(await messageOf(sql, silent.id), { status: 'sent' })
  t.same(
    asked.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    [lost, silent]
      .map(({ uuid }) => ({
        id: uuid,
        domain: organisation.domain,
        mailFromDomain: `mail.${organisation.domain}`,
        copies: 1,
      }))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
  )

  const late = await post(`${base}/providers/mailgun/events`, null, callbackOf(event))
  t.equal(late.status, 200)
  const types = (await timelineOf(sql, lost.id)).map(({ type }) => type)
  t.same(types, ['queued', 'sent', 'delivered'], 'a late callback adds nothing')
})

t.test('a poll records all receipts of the provider', async (t) => {
  const [message] = (await sendEmails(1)) as [SentMessage]
  known.set(message.uuid, [
    failure('temporary', message.messageId, deliveryStatus(451, 'Try again later')),
    failure('permanent', message.messageId, deliveryStatus(550, '5.7.1 Blocked')),
    mailgunEvent('opened', message.messageId),
  ])
  await ask([message])
  await noJobs()
  t.match(await messageOf(sql, message.id), { status: 'bounced', errorCode: 'soft_bounce' })
  const types = (await timelineOf(sql, message.id)).map(({ type }) => type)
  t.same(types, ['queued', 'sent', 'deferred', 'bounced'])
})

/** How many receipts of emails both processes counted, by type. */
async function countedReceipts(): Promise<Record<string, number>> {
  const counted: Record<string, number> = {}
  for (const address of [metricsAddress, second]) {
    const { text } = await get(`${address}/metrics`, null)
    const samples = text.matchAll(
      /^postgram_receipts_total\{channel="email",type="(\w+)"\} (\d+)$/gm,
    )
    for (const [, type = '', count] of samples) {
      counted[type] = (counted[type] ?? 0) + Number(count)
    }
  }
  return counted
}

t.test('a receipt counts once, however often polls and callbacks bring it', async (t) => {
  const [message] = (await sendEmails(1)) as [SentMessage]
  const deferred = () =>
    failure('temporary', message.messageId, deliveryStatus(451, 'Try again later'))
  const called = deferred()
  const events = [deferred(), called, mailgunEvent('accepted', message.messageId)]
  const report = async (event: MailgunEvent) => {
    const { status } = await post(`${base}/providers/mailgun/events`, null, callbackOf(event))
    t.equal(status, 200)
  }
  const { deferred: before = 0, ...others } = await countedReceipts()
  const expect = async (count: number, when: string) =>
    t.same(await countedReceipts(), { ...others, deferred: before + count }, when)

  await report(called)
  await expect(1, 'a callback')
  known.set(message.uuid, events)
  await ask([message])
  await noJobs()
  await expect(2, 'a poll')
  await ask([message])
  await noJobs()
  await expect(2, 'another poll')
  for (const event of events) await report(event)
  await expect(2, 'callbacks of receipts that were recorded before')
  const types = (await timelineOf(sql, message.id)).map(({ type }) => type)
  t.same(types, ['queued', 'sent', 'deferred', 'deferred'])
  t.equal(asked.length, 2, 'the provider was asked twice')
})

t.test('final messages and messages of deleted domains are not polled', async (t) => {
  const other = await createOrganisation(sql)
  const [ended, open] = (await sendEmails(2)) as [SentMessage, SentMessage]
  const [homeless] = (await sendAndHandOver({ base, sql }, other, [{}])) as [SentMessage]
  await sql`update app.messages set status = 'delivered' where id = ${ended.uuid}`
  await sql`delete from app.domains where name = ${other.domain}`
  await ask([ended, open, homeless, { uuid: '01890000-0000-7000-8000-000000000000' }])
  await noJobs()
  t.same(
    asked.map(({ id }) => id),
    [open.uuid],
  )
})

t.test('marketing email is polled for each copy', async (t) => {
  const to = ['a@example.com', 'B <b@example.com>', 'c@example.com', 'A@example.com']
  const [marketing] = (await sendEmails(1, { to, class: 'marketing' })) as [SentMessage]
  const [whole] = (await sendEmails(1, { to })) as [SentMessage]
  await ask([marketing, whole])
  await noJobs()
  t.same(
    new Map(asked.map(({ id, copies }) => [id, copies])),
    new Map([
      [marketing.uuid, 3],
      [whole.uuid, 1],
    ]),
  )
})

t.test('all processes together make one query at a time', async (t) => {
  const messages = await sendEmails(12)
  let inProgress = 0
  let most = 0
  beforeResponse = async () => {
    inProgress += 1
    most = Math.max(most, inProgress)
    await call('health', {})
    inProgress -= 1
  }
  for (let start = 0; start < messages.length; start += 3) {
    await ask(messages.slice(start, start + 3))
  }
  await noJobs()
  t.equal(asked.length, 12)
  t.equal(most, 1)
})

t.test('an unreachable provider fails the job, and earlier receipts are recorded', async (t) => {
  const messages = (await sendEmails(3)).toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))
  const [first, second, third] = messages as [SentMessage, SentMessage, SentMessage]
  for (const message of messages) delivered(message)
  let isAway = true
  beforeResponse = async ({ id }) => {
    if (isAway && id === second.uuid) throw new ProviderUnavailable('Mailgun is away')
  }
  await ask(messages)
  await until('the failure', async () => (await pollJobs())[0]?.lastError)
  t.match(await pollJobs(), [{ attempts: 1, lastError: /Mailgun is away/ }])
  t.match(await messageOf(sql, first.id), { status: 'delivered' })
  t.match(await messageOf(sql, third.id), { status: 'sent' })

  isAway = false
  asked = []
  await tryAgain()
  await noJobs()
  t.same(
    asked.map(({ id }) => id),
    [second.uuid, third.uuid],
  )
  for (const { id } of messages) t.match(await messageOf(sql, id), { status: 'delivered' })
})

t.test('a worker that stops cancels its query and records earlier receipts', async (t) => {
  const messages = (await sendEmails(2)).toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))
  const [first, second] = messages as [SentMessage, SentMessage]
  for (const message of messages) delivered(message)
  const stop = new AbortController()
  beforeResponse = async ({ id }) => {
    if (id !== second.uuid) return
    stop.abort()
    await new Promise(() => undefined)
  }
  const helpers = { abortSignal: stop.signal } as Parameters<ReturnType<typeof pollReceipts>>[1]
  const counted: string[][] = []
  const task = pollReceipts(call, createProvider(), {
    receipt: (channel, type) => counted.push([channel, type]),
  })
  const ids = messages.map(({ uuid }) => uuid)
  await t.rejects(async () => task({ ids }, helpers), { message: 'the worker stopped' })
  t.match(await messageOf(sql, first.id), { status: 'delivered' })
  t.match(await messageOf(sql, second.id), { status: 'sent' })
  t.same(counted, [['email', 'delivered']])

  asked = []
  await t.rejects(async () => task({ ids }, helpers), { message: 'the worker stopped' })
  t.match(await messageOf(sql, second.id), { status: 'sent' }, 'a stopped worker starts no poll')
})

t.test('a provider needs the Message-ID only', async (t) => {
  const [message] = (await sendEmails(1)) as [SentMessage]
  delivered(message)
  await ask([message])
  await noJobs()
  const [email] = asked as [SentEmail]
  t.equal(messageIdOf({ ...email, copy: null }), message.messageId)
})
