import type { Delivery } from '../db/api.gen.ts'
import { processTime, type Time } from '../time/index.ts'

/** Lets the record of a post release the lease, which spares the look that would find nothing due. */
export type LastRecord = {
  /**
   * To be called once, when the post has ended. Returns whether no other post or look is in progress and nothing is
   * known to be due.
   */
  mayRelease(): boolean
  /** To be called when the record has released the lease. */
  onReleased(): void
}

type LeaseOptions = {
  /** Starts up to `room` deliveries that are due at the endpoint, other than the events in progress. */
  start(inProgress: string[], room: number): Promise<Delivery[]>
  /**
   * Posts one event and records the attempt. Returns whether it succeeded; null when a local failure
   * prevented the post. Throws when the attempt could not be recorded.
   */
  deliver(delivery: Delivery, last: LastRecord): Promise<boolean | null>
  /** How many posts may be in progress at the moment. */
  maxPosts(): number
  /** Whether one more failing endpoint may be posted to. Asked repeatedly during a lease. */
  mayFail(): boolean
  /** Once aborted, the lease starts nothing more. */
  stopping: AbortSignal
  time?: Time
}

/**
 * - `released`: nothing was due, and api.start_deliveries or api.finish_leases has released the lease.
 * - `ended`: the lease is still held, and the caller releases it.
 * - `deferred`: the same, and the endpoint should wait before the next lease.
 */
type LeaseEnd = 'released' | 'ended' | 'deferred'

export type Lease = ReturnType<typeof createLease>

/** After this time other endpoints get their lease. */
const LEASE_MS = 5000

/** How often the lease of a slow endpoint looks for deliveries whose jobs another process took. */
const LOOK_AGAIN_AFTER_MS = 1000

/**
 * The exclusive right to deliver to an endpoint for a while. Posts run side by side in a window that is
 * refilled once a quarter of it is free. A failing endpoint gets a round of a few posts; a further round
 * follows only if one of them succeeds.
 */
export function createLease({
  start,
  deliver,
  maxPosts,
  mayFail,
  stopping,
  time = processTime,
}: LeaseOptions) {
  const endsAt = time.now() + LEASE_MS
  const inProgress = new Map<string, Promise<void>>()
  const errors: unknown[] = []
  let woken = Promise.withResolvers<void>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let isNotified = false
  let isEmptied = false
  let isFailing = false
  let hasSucceeded = true
  let hasLocalFailure = false
  let isOver = false
  let isReleased = false
  /** Posts that have not ended. Those in `inProgress` may have, and are being recorded. */
  let posting = 0
  /** Each look claims the lease, also one that finds nothing while posts are in progress. */
  let looks = 0
  let isLooking = false

  /** Makes the lease notice at once that it has to stop. */
  const wake = () => woken.resolve()

  async function nextChange() {
    const cancel = time.after(LOOK_AGAIN_AFTER_MS, wake)
    await woken.promise
    cancel()
    woken = Promise.withResolvers()
  }

  function mayGoOn(): boolean {
    if (errors.length > 0 || hasLocalFailure || stopping.aborted) return false
    if (time.now() > endsAt) return false
    return !isFailing || hasSucceeded || inProgress.size > 0
  }

  function shouldLook(): boolean {
    if (inProgress.size === 0) return true
    const room = maxPosts() - inProgress.size
    if (isFailing || room <= 0) return false
    const isLate = time.now() - lookedAt > LOOK_AGAIN_AFTER_MS
    return isNotified || isLate || (!isEmptied && room >= maxPosts() / 4)
  }

  function begin(delivery: Delivery) {
    posting += 1
    let looksBefore = looks
    const last: LastRecord = {
      mayRelease() {
        posting -= 1
        looksBefore = looks
        return posting === 0 && !isLooking && isEmptied && !isNotified && !isFailing
      },
      onReleased() {
        // A look that began while this post was recorded may have claimed the lease again.
        isReleased = looks === looksBefore
      },
    }
    const settled = deliver(delivery, last)
      .then(
        (isSuccess) => {
          hasSucceeded ||= isSuccess === true
          hasLocalFailure ||= isSuccess === null
        },
        (error) => {
          errors.push(error)
        },
      )
      .then(() => {
        inProgress.delete(delivery.eventId)
        wake()
      })
    inProgress.set(delivery.eventId, settled)
  }

  async function deliverWhatIsDue(): Promise<LeaseEnd> {
    while (mayGoOn()) {
      if (!shouldLook()) {
        await nextChange()
        continue
      }
      if (isReleased && inProgress.size === 0 && !isNotified) {
        isOver = true
        return 'released'
      }
      isReleased = false
      isNotified = false
      lookedAt = time.now()
      const reported = [...inProgress.keys()]
      const room = maxPosts() - reported.length
      looks += 1
      isLooking = true
      const deliveries = await start(reported, room)
      isLooking = false
      // api.start_deliveries releases the lease only if nothing was reported in progress.
      if (deliveries.length === 0 && reported.length === 0) {
        // The job of a delivery that fell due just after the look has ended, relying on this lease.
        if (isNotified) continue
        isOver = true
        return 'released'
      }
      isEmptied = deliveries.length < room
      hasSucceeded = false
      if (deliveries.length > 0) isFailing = deliveries.some((delivery) => delivery.isFailing)
      if (isFailing && !mayFail()) return 'deferred'
      deliveries.forEach(begin)
    }
    return 'ended'
  }

  return {
    /** Delivers until the lease ends and nothing is in progress. Throws when an attempt was not recorded. */
    async run(): Promise<LeaseEnd> {
      const end = await deliverWhatIsDue().catch((error): LeaseEnd => {
        errors.push(error)
        return 'ended'
      })
      await Promise.all(inProgress.values())
      isOver = true
      if (errors.length > 0) throw errors[0]
      return hasLocalFailure && !stopping.aborted ? 'deferred' : end
    },
    /** Reports that something fell due. Returns false if the lease will not look for deliveries again. */
    notify(): boolean {
      isNotified = true
      wake()
      return !isOver
    },
    wake,
  }
}
