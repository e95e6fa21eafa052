import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import { ConnectionLost, Unreachable } from '../../src/db/connection-errors.ts'
import type { SmsSendResult } from '../../src/providers/sms.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import {
  AT_NOON,
  backlogOf,
  messageOf,
  PROMOTION,
  sendSms,
  timelineOf,
} from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { createSmsStandIn, untakenPartsOf } from '../fixtures/providers.ts'
import { anSmsWorker, sendHeartbeat, startApiAt } from '../fixtures/service.ts'

// Only the API runs: a test runs a job by calling its task.
const { url, sql } = await createDatabase()
const { base } = await startApiAt(sql, url, AT_NOON)
const organisation = await createPayer(sql, { included: 1_000_000 })
await sql`select ops.record_consent(${organisation.id}, '+447700900000', 'a form')`
const asService = serviceCall(url, { clock: { 'postgram.now': AT_NOON } })

/** One worker with its own provider, and a queued SMS. */
async function setUp({ segments = 1, kind = 'transactional' } = {}) {
  const provider = createSmsStandIn()
  const worker = anSmsWorker(sql, asService, provider)
  const marketing = {
    class: 'marketing',
    body: segments === 1 ? PROMOTION : PROMOTION.padStart(153 * segments, 'x '),
  }
  const sms = kind === 'marketing' ? marketing : {}
  const id = await sendSms(base, organisation, smsOf(segments, sms))
  const uuid = (await messageOf(sql, id)).id
  return { provider, task: worker.task, id, uuid, attemptSend: () => worker.attemptSend(id) }
}

const partsTaken = (id: string) => sql<{ part: number; provider: string; networkId: string }[]>`
  select part, provider, network_id, phone from app.sms_parts
  where message_id = core.decode_id('sm', ${id}) order by part`

const isDeferred = async (id: string) => {
  const [job] = await sql`
    select from graphile_worker._private_jobs j
    where j.payload ->> 'id' = core.decode_id('sm', ${id})::text and j.run_at > j.created_at`
  return job !== undefined
}

/** The credits that were refunded, or null. */
async function refundOf(id: string) {
  const [refund] = await sql<{ given: number }[]>`
    select credits + included as given from app.credit_ledger
    where message_id = core.decode_id('sm', ${id}) and kind = 'refund'`
  return refund?.given ?? null
}

t.test('send_sms: the provider gets the complete SMS', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  await attemptSend()
  t.match(provider.handed, [
    {
      ...{ attempt: 1, segments: 1, takenParts: [], class: 'transactional' },
      ...{ sender: 'Postgram', recipient: '+447700900000', body: smsOf(1).body },
    },
  ])
  t.match(await partsTaken(id), [{ part: 1, provider: 'stand-in', phone: '+447700900000' }])
  t.equal(await refundOf(id), null)
})

t.test('send_sms: each part of a long SMS is recorded with its network ID', async (t) => {
  const { id, uuid, attemptSend } = await setUp({ segments: 3 })
  await attemptSend()
  t.match(
    await partsTaken(id),
    [1, 2, 3].map((part) => ({ part, networkId: `${uuid}.${part}` })),
  )
})

t.test(
  'send_sms: an SMS refused after some parts were accepted fails without a refund',
  async (t) => {
    const { provider, id, attemptSend } = await setUp({ segments: 3 })
    provider.onSend = (sms) => ({
      outcome: 'failed',
      code: '1',
      text: 'Too long.',
      parts: untakenPartsOf(sms).slice(0, 1),
    })
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_rejected' })
    t.match(await partsTaken(id), [{ part: 1 }])
    t.equal(await refundOf(id), null)
  },
)

t.test('send_sms: an SMS deferred after some parts continues with the other parts', async (t) => {
  for (const kind of ['transactional', 'marketing']) {
    const { provider, id, attemptSend } = await setUp({ segments: 3, kind })
    provider.onSend = (sms) => ({
      outcome: 'deferred',
      code: 'ESME_RTHROTTLED',
      parts: untakenPartsOf(sms).slice(0, 1),
    })
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: null })
    t.ok(await isDeferred(id))
    provider.onSend = (sms) => ({ outcome: 'sent', parts: untakenPartsOf(sms) })
    await attemptSend()
    t.match(provider.handed, [{ takenParts: [] }, { takenParts: ['1'], attempt: 2 }])
    t.match(await messageOf(sql, id), { status: 'sent', attempts: 2 })
    t.equal((await partsTaken(id)).length, 3)
  }
})

t.test(
  'send_sms: after an ambiguous attempt the unaccepted parts of a transactional SMS are sent again',
  async (t) => {
    const { provider, id, attemptSend } = await setUp({ segments: 2 })
    provider.onSend = (sms) => ({
      outcome: 'ambiguous',
      text: 'the link was lost',
      parts: untakenPartsOf(sms).slice(0, 1),
    })
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: Date })
    t.match((await timelineOf(sql, id)).at(-1), {
      type: 'deferred',
      detail: { attempt: 1, isAmbiguous: true, text: 'the link was lost' },
    })
    t.ok(await isDeferred(id))
    provider.onSend = (sms) => ({ outcome: 'sent', parts: untakenPartsOf(sms) })
    await attemptSend()
    t.same(provider.handed[1]?.takenParts, ['1'])
    t.match(await messageOf(sql, id), { status: 'sent', attemptStartedAt: null })
  },
)

t.test('send_sms: an SMS that fails after an ambiguous attempt is not refunded', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => {
    throw new Error('the link was lost')
  }
  await attemptSend()
  provider.onSend = () => ({ outcome: 'deferred', text: 'Not now.' })
  await attemptSend()
  provider.onSend = () => ({ outcome: 'failed', text: 'No.' })
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_rejected' })
  t.equal(await refundOf(id), null)
})

t.test(
  'send_sms: after an ambiguous attempt a marketing SMS fails and is neither sent again nor refunded',
  async (t) => {
    const { provider, id, attemptSend } = await setUp({ kind: 'marketing' })
    const before = await backlogOf(sql, organisation)
    provider.onSend = () => {
      throw new Error('the provider did not answer in time')
    }
    await attemptSend()
    t.match(await messageOf(sql, id), {
      status: 'failed',
      errorCode: 'provider_unavailable',
      errorMessage:
        'The link to the network was lost before it responded; marketing is not sent twice.',
      sentAt: null,
    })
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      {
        type: 'failed',
        detail: { isAmbiguous: true, text: 'the provider did not answer in time' },
      },
    ])
    t.equal(await refundOf(id), null)
    t.equal(await backlogOf(sql, organisation), before - 1)
    await attemptSend()
    t.equal(provider.handed.length, 1)
  },
)

t.test('send_sms: an attempt cut off by a crash is ambiguous', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  // Accepts the SMS and does not respond, as if the process had been killed meanwhile.
  const { promise: isTaken, resolve: take } = Promise.withResolvers<void>()
  const { promise: answer, resolve: answerLate } = Promise.withResolvers<SmsSendResult>()
  provider.onSend = () => {
    take()
    return answer
  }
  const cutOff = attemptSend()
  await isTaken
  const next = createSmsStandIn()
  next.onSend = () => ({ outcome: 'failed', text: 'No.' })
  await anSmsWorker(sql, asService, next).attemptSend(id)
  t.match(next.handed, [{ attempt: 2, takenParts: [] }])
  const failed = await messageOf(sql, id)
  t.match(failed, { status: 'failed', attempts: 2 })
  t.equal(await refundOf(id), null)

  answerLate({ outcome: 'failed' })
  await cutOff
  t.same(await messageOf(sql, id), failed)
  t.equal(await refundOf(id), null)
})

t.test('send_sms: a late response does not change the outcome or known parts', async (t) => {
  const { provider, id, uuid, attemptSend } = await setUp({ segments: 2 })
  const { promise: isTaken, resolve: take } = Promise.withResolvers<void>()
  const { promise: answer, resolve: answerLate } = Promise.withResolvers<SmsSendResult>()
  provider.onSend = () => {
    take()
    return answer
  }
  const cutOff = attemptSend()
  await isTaken
  await anSmsWorker(sql, asService, createSmsStandIn()).attemptSend(id)
  const sent = await messageOf(sql, id)
  t.match(sent, { status: 'sent', attempts: 2 })
  answerLate({ outcome: 'failed', text: 'a duplicate', parts: [{ part: 1, network_id: 'other' }] })
  await cutOff
  t.same(await messageOf(sql, id), sent)
  t.match(await partsTaken(id), [{ networkId: `${uuid}.1` }, { networkId: `${uuid}.2` }])
})

t.test('send_sms: a worker that stops before the provider is called defers the SMS', async (t) => {
  const { provider, id } = await setUp({ kind: 'marketing' })
  await anSmsWorker(sql, asService, provider).attemptSend(id, AbortSignal.abort())
  t.equal(provider.handed.length, 0)
  t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: null })
  t.ok(await isDeferred(id))
})

/** The service's call, except that the first call of finish_messages fails, after it took effect if `isDone`. */
function failingFinish({ isDone }: { isDone: boolean }) {
  let hasFailed = false
  const call: Call = async (name, args, options) => {
    const isFirst = name === 'finish_messages' && !hasFailed
    if (!isFirst) return asService(name, args, options)
    hasFailed = true
    if (!isDone) throw new Unreachable('no connection to the database became free within 5000 ms')
    await asService(name, args, options)
    throw new ConnectionLost(new Error('the server closed the connection'))
  }
  return call
}

t.test('send_sms: the result is recorded although the database is away at first', async (t) => {
  const { provider, id } = await setUp()
  await anSmsWorker(sql, failingFinish({ isDone: false }), provider).attemptSend(id)
  t.equal(provider.handed.length, 1)
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1 })
})

t.test('send_sms: a result that is recorded twice defers the SMS once', async (t) => {
  const { provider, id } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred', code: 'ESME_RTHROTTLED' })
  await anSmsWorker(sql, failingFinish({ isDone: true }), provider).attemptSend(id)
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1 })
  const { length: jobs } = await sql`
    select from graphile_worker._private_jobs
    where payload ->> 'id' = core.decode_id('sm', ${id})::text`
  t.equal(jobs, 1)
})

t.test('ops.why(): names the failing provider that an SMS waits for', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => ({
    outcome: 'deferred',
    about: 'connection',
    text: 'The queue is full.',
  })
  await attemptSend()
  // The time of the service is fixed, the time of an operator is not.
  await sql`update app.provider_health set last_failed_at = now()`
  await sendHeartbeat(asService)
  const [row] = await sql<{ why: string }[]>`select ops.why(${id}) as why`
  t.match(
    row?.why,
    /because the provider stand-in has accepted no messages since .*: The queue is full\.$/,
  )
  provider.onSend = (sms) => ({ outcome: 'sent', parts: untakenPartsOf(sms) })
  await attemptSend()
  t.same(await sql`select from ops.failing_providers`, [])
})
