import type { Delivery } from '../db/api.gen.ts'

export type TurnOptions = {
  /** What is to be posted next at the endpoint, beside the events in hand. */
  start(inHand: string[], room: number): Promise<Delivery[]>
  /**
   * Posts and records one; answers whether it succeeded, null when it was not posted for a lack of ours.
   * Throws when that could not be recorded.
   */
  deliver(delivery: Delivery): Promise<boolean | null>
  /** How many posts may be under way at the moment. */
  places(): number
  /** Whether there is room for one more turn at an endpoint that fails; asked again in the same turn. */
  mayFail(): boolean
  /** Once aborted, nothing more is taken. */
  stopping: AbortSignal
}

/**
 * idle: nothing was due any more, and api.start_deliveries gave the turn up. Else it is still held; when
 * crowded out it is of no use to have another at once.
 */
export type TurnEnd = 'idle' | 'over' | 'crowded out'

export type Turn = {
  /** Settles once nothing is in hand; throws when something could not be recorded. */
  have(): Promise<TurnEnd>
  /** Says that something fell due; false when the turn has looked for the last time. */
  nudge(): boolean
  /** Makes it see at once that it is to stop. */
  wake(): void
}

/** Then it is the turn of those who wait. */
const TURN_MS = 5000

/** For what falls due at an endpoint that answers slowly, when the job for it came to another process. */
const ASK_AGAIN_AFTER_MS = 1000

/**
 * A turn at an endpoint: a window of posts under way, filled again when a quarter of it is free. One
 * that fails has a round of a few posts; only if one of them succeeds is there another.
 */
export function createTurn({ start, deliver, places, mayFail, stopping }: TurnOptions): Turn {
  const endsAt = performance.now() + TURN_MS
  const inHand = new Map<string, Promise<void>>()
  const failures: unknown[] = []
  let heard = Promise.withResolvers<void>()
  let askedAt = Number.NEGATIVE_INFINITY
  let isNudged = false
  let isDry = false
  let isFailing = false
  let hasSucceeded = true
  let isLacking = false
  let isOver = false

  const wake = () => heard.resolve()

  async function news() {
    const timer = setTimeout(wake, ASK_AGAIN_AFTER_MS)
    await heard.promise
    clearTimeout(timer)
    heard = Promise.withResolvers()
  }

  function mayGoOn(): boolean {
    if (failures.length > 0 || isLacking || stopping.aborted) return false
    if (performance.now() > endsAt) return false
    return !isFailing || hasSucceeded || inHand.size > 0
  }

  function isToAsk(): boolean {
    if (inHand.size === 0) return true
    const free = places() - inHand.size
    if (isFailing || free <= 0) return false
    const isLate = performance.now() - askedAt > ASK_AGAIN_AFTER_MS
    return isNudged || isLate || (!isDry && free >= places() / 4)
  }

  function take(delivery: Delivery) {
    const settled = deliver(delivery)
      .then(
        (isSuccess) => {
          hasSucceeded ||= isSuccess === true
          isLacking ||= isSuccess === null
        },
        (error) => {
          failures.push(error)
        },
      )
      .then(() => {
        inHand.delete(delivery.eventId)
        wake()
      })
    inHand.set(delivery.eventId, settled)
  }

  async function go(): Promise<TurnEnd> {
    while (mayGoOn()) {
      if (!isToAsk()) {
        await news()
        continue
      }
      isNudged = false
      askedAt = performance.now()
      const said = [...inHand.keys()]
      const room = places() - said.length
      const deliveries = await start(said, room)
      // Not what is in hand by now: the turn was kept for what was said to be.
      if (deliveries.length === 0 && said.length === 0) {
        // What fell due just after that look has a job that relies on another.
        if (isNudged) continue
        isOver = true
        return 'idle'
      }
      isDry = deliveries.length < room
      hasSucceeded = false
      if (deliveries.length > 0) isFailing = deliveries.some((delivery) => delivery.isFailing)
      if (isFailing && !mayFail()) return 'crowded out'
      deliveries.forEach(take)
    }
    return 'over'
  }

  return {
    async have() {
      const end = await go().catch((error): TurnEnd => {
        failures.push(error)
        return 'over'
      })
      await Promise.all(inHand.values())
      isOver = true
      if (failures.length > 0) throw failures[0]
      return isLacking && !stopping.aborted ? 'crowded out' : end
    },
    nudge() {
      isNudged = true
      wake()
      return !isOver
    },
    wake,
  }
}
