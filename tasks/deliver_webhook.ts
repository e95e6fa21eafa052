import type { Job, Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Delivery, DeliveryResult, HeldLease } from '../src/db/api.gen.ts'
import { createBatcher, createRecorder, MAX_IN_ONE_COMMIT } from '../src/db/batcher/index.ts'
import type { Call } from '../src/db/call.ts'
import { type AttemptOptions, attempt } from '../src/webhooks/attempt.ts'
import { createLease, type Lease } from '../src/webhooks/lease.ts'
import { createSlots } from '../src/webhooks/slots.ts'

const idSchema = v.pipe(v.string(), v.uuid())
const payloadSchema = v.union([
  v.object({ endpoint: idSchema }),
  v.object({ endpoints: v.pipe(v.array(idSchema), v.maxLength(100)) }),
])

/** Deliveries started in one call. They carry their bodies, so this keeps a result at some megabytes. */
const MAX_STARTED_AT_ONCE = 1000

/** Posts in progress at one endpoint; api.start_deliveries has the same limit, and one for failing endpoints. */
const MAX_POSTS = 32

/** Posts in progress in this process, each with a socket. With many leases, each lease gets few. */
const MAX_POSTS_IN_ALL = 4000

/** How long an endpoint waits that got no slot, or that a local failure kept from being posted to. */
const DEFER_SECONDS = 10

export type DeliverWebhookOptions = AttemptOptions & {
  /** Seals signing secrets that are not sealed yet. */
  sealSecrets(): Promise<unknown>
  /** Aborted when the worker stops: posts in progress may end, and no more are started. */
  stopping: AbortSignal
}

/** The job that wants the lease of an endpoint. */
type Holder = { endpoint_id: string; job: string; worker: string | null }
type ToStart = Holder & { in_hand: string[]; room: number }
/** A result, and the lease that may be released with it. */
type ToFinish = { result: DeliveryResult; lease: HeldLease | null }
type ToRelease = Holder & { pause_seconds: number }

type Running = { job: string; lease: Lease; ended: Promise<unknown> }

/**
 * Creates the tasks deliver_webhook (of one endpoint) and deliver_webhooks (of several). Claims the lease of each
 * endpoint and posts its due events, until none is due or the lease ends. The rest then gets a job behind those of
 * other endpoints. An attempt that was not recorded is repeated.
 */
export default function deliverWebhook(call: Call, options: DeliverWebhookOptions): Task {
  const { stopping, sealSecrets, time } = options
  const start = createBatcher<ToStart, Delivery[]>(
    async (leases) => {
      const deliveries = await call('start_deliveries', { leases })
      // A failure does not matter here: the scheduled task repeats it and reports its errors.
      if (deliveries.some(({ plainSecrets }) => plainSecrets.length > 0)) {
        void sealSecrets().catch(() => undefined)
      }
      const byEndpoint = Map.groupBy(deliveries, ({ endpointId }) => endpointId)
      return leases.map(({ endpoint_id: id }) => byEndpoint.get(id) ?? [])
    },
    { maxWeight: MAX_STARTED_AT_ONCE, weigh: ({ room }) => room },
  )
  const finish = createBatcher<ToFinish, boolean>(
    async (items) => {
      const results = items.map(({ result }) => result)
      const leases = items.flatMap(({ lease }) => lease ?? [])
      if (leases.length === 0) {
        await call('finish_deliveries', { results })
        return items.map(() => false)
      }
      const released = new Set(await call('finish_leases', { results, leases }))
      return items.map(({ lease }) => lease !== null && released.has(lease.endpoint_id))
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const release = createRecorder<ToRelease>((leases) => call('release_leases', { leases }))

  const running = new Map<string, Running>()
  const slots = createSlots()
  stopping.addEventListener('abort', () => {
    for (const { lease } of running.values()) lease.wake()
  })

  async function deliverTo(holder: Holder, signal: AbortSignal): Promise<void> {
    const slot = slots.acquire(holder.endpoint_id)
    if (!slot) return void (await release({ ...holder, pause_seconds: DEFER_SECONDS }))
    // A signal of this lease: thousands of posts would otherwise listen to the same one.
    const aborting = new AbortController()
    const abort = () => aborting.abort()
    signal.addEventListener('abort', abort)
    // Decrypting the secret for each event made deliveries a fifth slower. It is kept no longer than the lease.
    const attemptOptions = { ...options, openSecret: openingOnce(options.openSecret) }
    const lease = createLease({
      start: (inProgress, room) => start({ ...holder, in_hand: inProgress, room }),
      async deliver(delivery, last) {
        const result = await attempt(delivery, attemptOptions, aborting.signal)
        const mayRelease = last.mayRelease() && result?.error === null
        if (result) {
          slot.recordPost(result.duration_ms)
          const { endpoint_id, job } = holder
          const lease = mayRelease ? { endpoint_id, job } : null
          if (await finish({ result, lease })) last.onReleased()
        }
        return result && result.error === null
      },
      maxPosts: () => Math.max(1, Math.min(MAX_POSTS, Math.floor(MAX_POSTS_IN_ALL / running.size))),
      mayFail: slot.mayFail,
      stopping,
      ...(time && { time }),
    })
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const mine = { job: holder.job, lease, ended }
    running.set(holder.endpoint_id, mine)
    try {
      const end = await lease.run()
      const pause = end === 'deferred' ? DEFER_SECONDS : 0
      if (end !== 'released') await release({ ...holder, pause_seconds: pause })
    } finally {
      signal.removeEventListener('abort', abort)
      slot.release()
      if (running.get(holder.endpoint_id) === mine) running.delete(holder.endpoint_id)
      resolve()
    }
  }

  async function deliverUnlessRunning(
    endpoint: string,
    job: Job,
    abortSignal: AbortSignal,
  ): Promise<void> {
    for (let other = running.get(endpoint); other; other = running.get(endpoint)) {
      // After a restart of the worker pool the same job can come again. No other job is left if its lease fails.
      if (other.job === job.id) await other.ended
      // Each event adds a job. The lease that is running looks once more on behalf of this one.
      else if (other.lease.notify()) return
      else break
    }
    await deliverTo({ endpoint_id: endpoint, job: job.id, worker: job.locked_by }, abortSignal)
  }

  return async (payload, { abortSignal, job }) => {
    const given = v.parse(payloadSchema, payload)
    const endpoints = 'endpoints' in given ? given.endpoints : [given.endpoint]
    const ends = await Promise.allSettled(
      endpoints.map((endpoint) => deliverUnlessRunning(endpoint, job, abortSignal)),
    )
    // Not before all have ended: the job holds their leases.
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }
}

/** Returns the same function, which opens each text only once. */
function openingOnce(openSecret: AttemptOptions['openSecret']): AttemptOptions['openSecret'] {
  const opened = new Map<string, string>()
  return (sealed) => {
    const secret = opened.get(sealed) ?? openSecret(sealed)
    opened.set(sealed, secret)
    return secret
  }
}
