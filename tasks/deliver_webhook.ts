import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Delivery } from '../src/db/api.gen.ts'
import { createBatcher } from '../src/db/batcher/index.ts'
import type { Call } from '../src/db/call.ts'
import { type AttemptOptions, type AttemptResult, attempt } from '../src/webhooks/attempt.ts'
import { createTurn, type Turn } from '../src/webhooks/lease.ts'
import { createShares } from '../src/webhooks/shares.ts'

const payloadSchema = v.object({ endpoint: v.pipe(v.string(), v.uuid()) })

/** As many as one commit should carry; more only makes the first of them wait. */
const MAX_IN_ONE_COMMIT = 500

/** Their bodies come along, so that the answer to one call stays within some megabytes. */
const MAX_STARTED_AT_ONCE = 1000

/** At one endpoint; api.start_deliveries knows this figure, and a smaller one for those that fail. */
const MAX_POSTS = 32

/** Each is a socket. Yield share them: with many at once, each has few. */
const POSTS_AT_A_TIME = 4000

/** Until those that found no room are looked at again, and those that nothing could be posted to. */
const PAUSE_SECONDS = 10

export type DeliverWebhookOptions = AttemptOptions & {
  /** Aborted as soon as the worker is to stop: what is in hand may end, but nothing more is taken. */
  stopping: AbortSignal
}

/** Whose turn it is, and what api.start_deliveries and api.release_leases want to know besides. */
type Holder = { endpoint_id: string; job: string; worker: string | null }
type Asked = Holder & { in_hand: string[]; room: number }
type Ended = Holder & { pause_seconds: number }

type Running = { job: string; turn: Turn; ended: Promise<unknown> }

/**
 * Takes an endpoint's turn: posts what is due there, until nothing is or the turn is over; what is
 * left then has a job behind those of others. What could not be recorded is posted again later.
 */
export default function deliverWebhook(call: Call, options: DeliverWebhookOptions): Task {
  const start = createBatcher<Asked, Delivery[]>(
    async (leases) => {
      const deliveries = await call('start_deliveries', { leases })
      const byEndpoint = Map.groupBy(deliveries, ({ endpointId }) => endpointId)
      return leases.map(({ endpoint_id: id }) => byEndpoint.get(id) ?? [])
    },
    { maxWeight: MAX_STARTED_AT_ONCE, weigh: ({ room }) => room },
  )
  const finish = createBatcher<AttemptResult, null>(
    async (results) => {
      await call('finish_deliveries', { results })
      return results.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const end = createBatcher<Ended, null>(
    async (leases) => {
      await call('release_leases', { leases })
      return leases.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )

  const running = new Map<string, Running>()
  const shares = createShares()
  options.stopping.addEventListener('abort', () => {
    for (const { turn } of running.values()) turn.wake()
  })

  async function haveTurn(holder: Holder, signal: AbortSignal): Promise<void> {
    const share = shares.take(holder.endpoint_id)
    if (!share) return void (await end({ ...holder, pause_seconds: PAUSE_SECONDS }))
    // Of its own, as one that all posts listened to would have thousands of listeners.
    const aborting = new AbortController()
    const abort = () => aborting.abort()
    signal.addEventListener('abort', abort)
    const turn = createTurn({
      start: (inHand, room) => start({ ...holder, in_hand: inHand, room }),
      async deliver(delivery) {
        const result = await attempt(delivery, options, aborting.signal)
        if (result) {
          share.took(result.duration_ms)
          await finish(result)
        }
        return result && result.error === null
      },
      places: () => Math.max(1, Math.min(MAX_POSTS, Math.floor(POSTS_AT_A_TIME / running.size))),
      mayFail: share.mayFail,
      stopping: options.stopping,
    })
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const mine = { job: holder.job, turn, ended }
    running.set(holder.endpoint_id, mine)
    try {
      const how = await turn.have()
      const pause = how === 'crowded out' ? PAUSE_SECONDS : 0
      if (how !== 'idle') await end({ ...holder, pause_seconds: pause })
    } finally {
      signal.removeEventListener('abort', abort)
      share.leave()
      if (running.get(holder.endpoint_id) === mine) running.delete(holder.endpoint_id)
      resolve()
    }
  }

  return async (payload, { abortSignal, job }) => {
    const { endpoint } = v.parse(payloadSchema, payload)
    for (let other = running.get(endpoint); other; other = running.get(endpoint)) {
      // The same job again, as when the worker was begun anew: it is all there is if that turn fails.
      if (other.job === job.id) await other.ended
      // Each event brings a job of its own. One look more, by who has the turn already, does for it.
      else if (other.turn.nudge()) return
      else break
    }
    await haveTurn({ endpoint_id: endpoint, job: job.id, worker: job.locked_by }, abortSignal)
  }
}
