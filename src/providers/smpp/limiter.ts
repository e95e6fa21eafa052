import { processTime, type Time } from '../../time/index.ts'

export type LimiterOptions = {
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

/** Issues permits in order, within window and rate, and more slowly while the network throttles. */
export class Limiter {
  readonly #window: number
  readonly #rate: number
  readonly #timer: Time
  readonly #waiting: Queue = new Set()
  readonly #waitingFirst: Queue = new Set()
  #speed: number
  #withoutResponse = 0
  #nextAt = -Infinity
  #slowedAt = -Infinity
  #cancelTimer: (() => void) | null = null
  #isClosed = false

  constructor({ window, rate, timer = processTime }: LimiterOptions) {
    this.#window = window
    this.#rate = rate
    this.#speed = rate
    this.#timer = timer
  }

  /** The current limit in PDUs per second. */
  get speed(): number {
    return this.#speed
  }

  /**
   * Returns the next permit; null if it does not come in time or the limiter is closed. Requests with
   * `isFirst` go before all others, so that a message in progress ends soon.
   */
  async acquire(timeoutMs: number, { isFirst = false } = {}): Promise<Permit | null> {
    if (this.#isClosed) return null
    const queue = isFirst ? this.#waitingFirst : this.#waiting
    return new Promise((resolve) => {
      const settle = (permit: Permit | null) => {
        cancelTimeout()
        queue.delete(settle)
        resolve(permit)
      }
      const cancelTimeout = this.#timer.after(timeoutMs, () => settle(null))
      queue.add(settle)
      this.#issue()
    })
  }

  /** Refuses all waiting and later requests. */
  close(): void {
    this.#isClosed = true
    for (const settle of [...this.#waitingFirst, ...this.#waiting]) settle(null)
    this.#cancelTimer?.()
  }

  /** Issues the permits that are due, and sets a timer for the next one. */
  #issue(): void {
    for (;;) {
      const [settle] = this.#waitingFirst.size > 0 ? this.#waitingFirst : this.#waiting
      if (!settle) return
      if (this.#withoutResponse >= this.#window || this.#cancelTimer) return
      const now = this.#timer.now()
      const waitMs = this.#nextAt - SLACK_MS - now
      if (waitMs > 0) {
        this.#cancelTimer = this.#timer.after(waitMs, () => {
          this.#cancelTimer = null
          this.#issue()
        })
        return
      }
      this.#nextAt = Math.max(this.#nextAt, now) + (1000 + SLACK_MS) / this.#speed
      this.#withoutResponse++
      settle(this.#permitFrom(now))
    }
  }

  #permitFrom(issuedAt: number): Permit {
    let isReleased = false
    return {
      release: (response) => {
        if (isReleased) return
        isReleased = true
        this.#withoutResponse--
        if (response === 'accepted') this.#speed = Math.min(this.#rate, this.#speed + RECOVERY)
        if (response === 'throttled') this.#slowDown(issuedAt)
        this.#issue()
      },
    }
  }

  /** Halves the speed once for all PDUs in progress, because all were sent at the speed that was too high. */
  #slowDown(issuedAt: number): void {
    if (issuedAt <= this.#slowedAt) return
    this.#slowedAt = this.#timer.now()
    this.#speed = Math.max(this.#speed / 2, this.#rate * MIN_SHARE)
  }
}
