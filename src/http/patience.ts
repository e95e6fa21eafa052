import type { Context } from 'koa'
import { OutcomeUnknown } from '../db/repeated-call.ts'

/** How long a request may wait for the database in all; many clients give up after 10 s. */
const WAITS_MS = 9500

export type Patience = {
  /**
   * The result of work on the database. When the time of the request is up, work that has not begun is
   * told by `signal` not to; of other work the outcome is unknown.
   */
  wait<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>
}

/** That of a request: what one part of it waits, others do not. The time its body takes to arrive does not count. */
export function patienceOf(ctx: Context): Patience {
  ctx.state.patience ??= createPatience(WAITS_MS)
  return ctx.state.patience
}

export function createPatience(waitsMs: number): Patience {
  let leftMs = waitsMs
  return {
    async wait(work) {
      const started = performance.now()
      const ending = new AbortController()
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => {
        ending.abort()
        // After what the signal has ended, which knows that nothing began.
        setImmediate(() =>
          reject(new OutcomeUnknown(new Error(`the database took longer than ${waitsMs} ms`))),
        )
      }, leftMs)
      try {
        return await Promise.race([work(ending.signal), late])
      } finally {
        clearTimeout(timer)
        leftMs -= performance.now() - started
      }
    },
  }
}
