/**
 * Posts to a failing endpoint may each take the whole time limit. Most slots of the worker stay free for
 * other endpoints, however many fail; the rest of the failing ones wait.
 */
const MAX_FAILING = 100

/**
 * An endpoint is slow when a post of its last lease took longer than this. Slow and failing endpoints
 * together leave a hundred slots of the worker to others. The limit is longer than the wait for a name
 * server that does not respond, which would otherwise make all endpoints slow.
 */
const SLOW_MS = 3000
const MAX_SLOW = 300

const MAX_REMEMBERED = 10_000

/** The slot of one lease. */
export type Slot = {
  /** Whether the endpoint may fail: true while fewer than the limit do, and then for the whole lease. */
  mayFail(): boolean
  /** Records how long a post took. It decides whether the endpoint is slow at its next lease. */
  recordPost(durationMs: number): void
  /** To be called once. */
  release(): void
}

/** Keeps slots of a worker free of failing and slow endpoints. */
export function createSlots() {
  /** In the order in which their leases ended. */
  const slowEndpoints = new Set<string>()
  let slow = 0
  let failing = 0

  function remember(endpoint: string, isSlow: boolean) {
    slowEndpoints.delete(endpoint)
    if (!isSlow) return
    slowEndpoints.add(endpoint)
    const [oldest] = slowEndpoints
    if (slowEndpoints.size > MAX_REMEMBERED && oldest) slowEndpoints.delete(oldest)
  }

  return {
    /** Returns a slot for a lease of this endpoint; null when it is slow and too many slow ones have slots. */
    acquire(endpoint: string): Slot | null {
      const isSlow = slowEndpoints.has(endpoint)
      if (isSlow && slow >= MAX_SLOW) return null
      if (isSlow) slow += 1
      let isFailing = false
      let longestMs: number | null = null
      return {
        mayFail() {
          if (!isFailing && failing < MAX_FAILING) {
            isFailing = true
            failing += 1
          }
          return isFailing
        },
        recordPost(durationMs) {
          longestMs = Math.max(longestMs ?? 0, durationMs)
        },
        release() {
          if (isFailing) failing -= 1
          if (isSlow) slow -= 1
          // A lease without a post proves nothing new.
          if (longestMs !== null) remember(endpoint, longestMs > SLOW_MS)
        },
      }
    },
  }
}
