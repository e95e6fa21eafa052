import t from 'tap'
import type { SmsSendResult } from '../../src/providers/sms.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import {
  AT_NOON,
  backlogOf,
  messageOf,
  PROMOTION,
  sendSms,
  sendSmsBatch,
  timelineOf,
} from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { createSmsStandIn, untakenPartsOf } from '../fixtures/providers.ts'
import { anSmsWorker, helpersOf, sendHeartbeat, startApiAt } from '../fixtures/service.ts'

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

t.test(
  'send_sms: the start of an attempt is committed before the provider is called',
  async (t) => {
    const { provider, id, attemptSend } = await setUp()
    provider.onSend = async (sms) => {
      t.match(await messageOf(sql, id), {
        status: 'queued',
        attempts: 1,
        attemptStartedAt: Date,
      })
      t.match(sms, { attempt: 1, segments: 1, takenParts: [], class: 'transactional' })
      t.match(sms, { sender: 'Postgram', recipient: '+447700900000', body: smsOf(1).body })
      return { outcome: 'sent', parts: untakenPartsOf(sms) }
    }
    const before = await backlogOf(sql, organisation)
    await attemptSend()
    t.match(await messageOf(sql, id), {
      status: 'sent',
      attempts: 1,
      attemptStartedAt: null,
      provider: 'stand-in',
      sentAt: Date,
    })
    t.match(await partsTaken(id), [{ part: 1, provider: 'stand-in', phone: '+447700900000' }])
    t.equal(await backlogOf(sql, organisation), before - 1)
    t.equal(await refundOf(id), null)
  },
)

t.test('send_sms: each part of a long SMS is recorded with its network ID', async (t) => {
  const { id, uuid, attemptSend } = await setUp({ segments: 3 })
  await attemptSend()
  t.match(
    await partsTaken(id),
    [1, 2, 3].map((part) => ({ part, networkId: `${uuid}.${part}` })),
  )
})

t.test('send_sms: a permanent refusal fails the SMS at once and refunds it', async (t) => {
  const { provider, id, attemptSend } = await setUp({ segments: 2 })
  const before = await backlogOf(sql, organisation)
  provider.onSend = () => ({ outcome: 'failed', code: 'ESME_RINVDSTADR', text: 'No such number.' })
  await attemptSend()
  t.match(await messageOf(sql, id), {
    status: 'failed',
    errorCode: 'provider_rejected',
    errorMessage: 'No such number.',
    sentAt: null,
  })
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'failed', detail: { attempt: 1, provider: 'stand-in', code: 'ESME_RINVDSTADR' } },
  ])
  t.equal(await backlogOf(sql, organisation), before - 1)
  t.equal(await refundOf(id), 2)
  t.notOk(await isDeferred(id))
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

t.test('send_sms: after 24 hours of deferrals an SMS fails and is refunded', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred', text: 'Not now.' })
  await attemptSend()
  t.strictSame((await timelineOf(sql, id)).at(-1)?.detail, {
    attempt: 1,
    provider: 'stand-in',
    text: 'Not now.',
  })
  await sql`
    update app.events set occurred_at = occurred_at - interval '24 hours 1 second'
    where message_id = core.decode_id('sm', ${id})`
  await attemptSend()
  t.match(await messageOf(sql, id), {
    status: 'failed',
    errorCode: 'provider_unavailable',
    errorMessage: 'Not now.',
  })
  t.equal(await refundOf(id), 1)
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

t.test('send_sms: a sandbox message goes to the sandbox, whatever the provider', async (t) => {
  const provider = createSmsStandIn()
  const { attemptSend, sandbox } = anSmsWorker(sql, asService, provider)
  const id = await sendSms(base, organisation)
  await sql`update app.messages set is_sandbox = true where id = core.decode_id('sm', ${id})`
  await attemptSend(id)
  t.match(await messageOf(sql, id), { status: 'sent', provider: 'sandbox' })
  t.match(await partsTaken(id), [{ provider: 'sandbox' }])
  t.same([provider.handed.length, sandbox.handed.length], [0, 1])
})

t.test('send_sms: concurrent SMS each get their own outcome', async (t) => {
  const provider = createSmsStandIn()
  const { task } = anSmsWorker(sql, asService, provider)
  const outcomes = ['sent', 'failed', 'deferred', 'ambiguous'] as const
  const ids = await sendSmsBatch(
    base,
    organisation,
    Array.from({ length: 80 }, (_, place) => ({ body: outcomes[place % outcomes.length] })),
  )
  provider.onSend = (sms) => ({ outcome: sms.body as 'sent', parts: untakenPartsOf(sms) })
  const messages = await Promise.all(ids.map((id) => messageOf(sql, id)))
  await Promise.all(messages.map(({ id }) => task({ id }, helpersOf('0'))))
  const expected = { sent: 'sent', failed: 'failed', deferred: 'queued', ambiguous: 'queued' }
  for (const [place, id] of ids.entries()) {
    const outcome = outcomes[place % outcomes.length] ?? 'sent'
    t.equal((await messageOf(sql, id)).status, expected[outcome])
    t.equal((await partsTaken(id)).length, 1, 'whatever the outcome')
  }
})

t.test('send_sms: a payload that names no SMS sends nothing', async (t) => {
  const { provider, task, uuid } = await setUp()
  t.same(await asService('start_emails', { ids: [uuid] }), [], 'an SMS is no email')
  await t.rejects(Promise.resolve(task({ id: 'sm_01' }, helpersOf('0'))), { name: 'ValiError' })
  t.equal(provider.handed.length, 0)
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
