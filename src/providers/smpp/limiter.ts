import { processTime, type Time } from '../../time/index.ts'

export type PaceOptions = {
  /** Unanswered PDUs allowed. */
  window: number
  /** PDUs in any second. */
  rate: number
  timer?: Time
}

/** A PDU that may be sent now. */
export type Turn = {
  /** It is answered or lost; `taken` and `throttled` are what the speed is judged by. */
  end(answer?: 'taken' | 'throttled'): void
}

type Queue = Set<(turn: Turn | null) => void>

/**
 * A timer that fires late must not cost speed: what it missed is made up for within so many
 * milliseconds, at an interval that is longer by as much, so that no second has more than the rate.
 */
const SLACK_MS = 20

/** The least speed, as a share of the rate: a network that is full must still be asked whether it is. */
const MIN_SHARE = 1 / 32

/** What a PDU that was taken adds to the speed: from half of it to all, at any rate, in some 15 seconds. */
const RECOVERY = 0.05

/** Gives out turns, in order, within the window and the rate; slower while the network says it is too much. */
export class Pace {
  readonly #window: number
  readonly #rate: number
  readonly #timer: Time
  readonly #waiting: Queue = new Set()
  readonly #waitingFirst: Queue = new Set()
  #speed: number
  #unanswered = 0
  #nextAt = -Infinity
  #slowedAt = -Infinity
  #callOff: (() => void) | null = null
  #isClosed = false

  constructor({ window, rate, timer = processTime }: PaceOptions) {
    this.#window = window
    this.#rate = rate
    this.#speed = rate
    this.#timer = timer
  }

  /** PDUs per second at the moment. */
  get speed(): number {
    return this.#speed
  }

  /**
   * The next turn; null when it does not come in time, or not at all. Whoever is to be `first` goes
   * before all who are not: what has begun is to end soon.
   */
  async turn(withinMs: number, { isFirst = false } = {}): Promise<Turn | null> {
    if (this.#isClosed) return null
    const queue = isFirst ? this.#waitingFirst : this.#waiting
    return new Promise((resolve) => {
      const settle = (turn: Turn | null) => {
        callOff()
        queue.delete(settle)
        resolve(turn)
      }
      const callOff = this.#timer.after(withinMs, () => settle(null))
      queue.add(settle)
      this.#giveOut()
    })
  }

  /** No more turns. */
  close(): void {
    this.#isClosed = true
    for (const settle of [...this.#waitingFirst, ...this.#waiting]) settle(null)
    this.#callOff?.()
  }

  #giveOut(): void {
    for (;;) {
      const [settle] = this.#waitingFirst.size > 0 ? this.#waitingFirst : this.#waiting
      if (!settle) return
      if (this.#unanswered >= this.#window || this.#callOff) return
      const now = this.#timer.now()
      const waitMs = this.#nextAt - SLACK_MS - now
      if (waitMs > 0) {
        this.#callOff = this.#timer.after(waitMs, () => {
          this.#callOff = null
          this.#giveOut()
        })
        return
      }
      this.#nextAt = Math.max(this.#nextAt, now) + (1000 + SLACK_MS) / this.#speed
      this.#unanswered++
      settle(this.#turnFrom(now))
    }
  }

  #turnFrom(startedAt: number): Turn {
    let isOver = false
    return {
      end: (answer) => {
        if (isOver) return
        isOver = true
        this.#unanswered--
        if (answer === 'taken') this.#speed = Math.min(this.#rate, this.#speed + RECOVERY)
        if (answer === 'throttled') this.#slowDown(startedAt)
        this.#giveOut()
      },
    }
  }

  /** Once for all that were under way together: they were all sent at the speed that was too much. */
  #slowDown(startedAt: number): void {
    if (startedAt <= this.#slowedAt) return
    this.#slowedAt = this.#timer.now()
    this.#speed = Math.max(this.#speed / 2, this.#rate * MIN_SHARE)
  }
}
