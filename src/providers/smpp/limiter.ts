import { processTime, type Time } from '../../time/index.ts'

type LimiterOptions = {
  /** The most PDUs without a response. */
  window: number
  /** The most PDUs in any second. */
  rate: number
  timer?: Time
}

/** Permission to send one PDU. */
export type Permit = {
  /** Call this once the PDU has a response or is lost; `accepted` and `throttled` adjust the speed. */
  release(response?: 'accepted' | 'throttled'): void
}

type Queue = Set<(permit: Permit | null) => void>

/**
 * A timer may fire late by some milliseconds. Permits may then be issued this much early to catch up, and
 * intervals are longer by this much, so that no second exceeds the rate.
 */
const SLACK_MS = 20

/** The lowest speed as a share of the rate, so that a throttling network is still tried. */
const MIN_SHARE = 1 / 32

/** The speed that each accepted PDU adds. Recovery from half the rate takes some 15 s at any rate. */
const RECOVERY = 0.05

export type Limiter = ReturnType<typeof createLimiter>

/** Issues permits in order, within window and rate, and more slowly while the network throttles. */
export function createLimiter({ window, rate, timer = processTime }: LimiterOptions) {
  const waiting: Queue = new Set()
  const waitingFirst: Queue = new Set()
  let speed = rate
  let withoutResponse = 0
  let nextAt = -Infinity
  let slowedAt = -Infinity
  let cancelTimer: (() => void) | null = null
  let isClosed = false

  /** Issues the permits that are due, and sets a timer for the next one. */
  function issue() {
    for (;;) {
      const [settle] = waitingFirst.size > 0 ? waitingFirst : waiting
      if (!settle || withoutResponse >= window || cancelTimer) return
      const now = timer.now()
      const waitMs = nextAt - SLACK_MS - now
      if (waitMs > 0) {
        cancelTimer = timer.after(waitMs, () => {
          cancelTimer = null
          issue()
        })
        return
      }
      nextAt = Math.max(nextAt, now) + (1000 + SLACK_MS) / speed
      withoutResponse++
      settle(permitFrom(now))
    }
  }

  function permitFrom(issuedAt: number): Permit {
    let isReleased = false
    return {
      release(response) {
        if (isReleased) return
        isReleased = true
        withoutResponse--
        if (response === 'accepted') speed = Math.min(rate, speed + RECOVERY)
        if (response === 'throttled') slowDown(issuedAt)
        issue()
      },
    }
  }

  /** Halves the speed once for all PDUs in progress, because all were sent at the speed that was too high. */
  function slowDown(issuedAt: number) {
    if (issuedAt <= slowedAt) return
    slowedAt = timer.now()
    speed = Math.max(speed / 2, rate * MIN_SHARE)
  }

  return {
    /** Returns the current limit in PDUs per second. */
    speed: () => speed,
    /**
     * Returns the next permit; null if it does not come in time or the limiter is closed. Requests with
     * `isFirst` go before all others, so that a message in progress ends soon.
     */
    async acquire(timeoutMs: number, { isFirst = false } = {}): Promise<Permit | null> {
      if (isClosed) return null
      const queue = isFirst ? waitingFirst : waiting
      return new Promise((resolve) => {
        const settle = (permit: Permit | null) => {
          cancelTimeout()
          queue.delete(settle)
          resolve(permit)
        }
        const cancelTimeout = timer.after(timeoutMs, () => settle(null))
        queue.add(settle)
        issue()
      })
    },
    /** Refuses all waiting and later requests. */
    close() {
      isClosed = true
      for (const settle of [...waitingFirst, ...waiting]) settle(null)
      cancelTimer?.()
    },
  }
}
