import type { Context } from 'koa'
import { CLIENT_TIME_LIMIT, OutcomeUnknown } from '../db/repeated-call.ts'

export type TimeLimit = {
  /**
   * The result of work on the database. When the time of the request is up, work that has not begun is
   * told by `signal` not to; of other work the outcome is unknown.
   */
  wait<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result>
}

/** Returns the time that a request may wait for the database in all; receiving its body does not count. */
export function timeLimitOf(ctx: Context): TimeLimit {
  ctx.state.patience ??= createTimeLimit(CLIENT_TIME_LIMIT.respondsWithinMs)
  return ctx.state.patience
}

/** `waitsMs`: how long all work together may take. */
export function createTimeLimit(waitsMs: number): TimeLimit {
  let leftMs = waitsMs
  return {
    async wait(work) {
      const started = performance.now()
      const ending = new AbortController()
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => {
        ending.abort()
        // Work that the abort rejects settles first: it knows that nothing began.
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
