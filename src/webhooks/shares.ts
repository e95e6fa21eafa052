/**
 * An endpoint that fails may keep its place for as long as a post may take. These are few enough to
 * leave most places of the worker to the others, however many fail; the rest of them wait.
 */
const FAILING_AT_A_TIME = 100

/**
 * One that took longer to answer in its last turn is slow: it may keep its place nearly as long, though it
 * succeeds. With those that fail they leave a hundred of the worker's places to the others. Longer than a
 * name server that is silent takes before the next is asked, as that would make all slow.
 */
const SLOW_MS = 3000
const SLOW_AT_A_TIME = 300

/** So many slow endpoints are remembered. */
const MAX_REMEMBERED = 10_000

/** What a turn takes of the places of its worker. */
export type Share = {
  /** Whether there is room for one more turn at an endpoint that fails; what this has once it keeps. */
  mayFail(): boolean
  /** Notes how long a post took, by which the endpoint's next turn is judged. */
  took(durationMs: number): void
  /** Gives it back, once. */
  leave(): void
}

export type Shares = {
  /** For a turn at this endpoint; null where as many slow ones as may have theirs. */
  take(endpoint: string): Share | null
}

/** How endpoints that fail or answer slowly leave places of a worker to the others. */
export function createShares(): Shares {
  /** Last the one whose turn ended last. */
  const slow = new Set<string>()
  let slowTurns = 0
  let failingTurns = 0

  function remember(endpoint: string, isSlow: boolean) {
    slow.delete(endpoint)
    if (!isSlow) return
    slow.add(endpoint)
    const [oldest] = slow
    if (slow.size > MAX_REMEMBERED && oldest) slow.delete(oldest)
  }

  return {
    take(endpoint) {
      const isSlow = slow.has(endpoint)
      if (isSlow && slowTurns >= SLOW_AT_A_TIME) return null
      if (isSlow) slowTurns += 1
      let isFailing = false
      let longestMs: number | null = null
      return {
        mayFail() {
          if (!isFailing && failingTurns < FAILING_AT_A_TIME) {
            isFailing = true
            failingTurns += 1
          }
          return isFailing
        },
        took(durationMs) {
          longestMs = Math.max(longestMs ?? 0, durationMs)
        },
        leave() {
          if (isFailing) failingTurns -= 1
          if (isSlow) slowTurns -= 1
          // Where nothing was posted, nothing new is known.
          if (longestMs !== null) remember(endpoint, longestMs > SLOW_MS)
        },
      }
    },
  }
}
