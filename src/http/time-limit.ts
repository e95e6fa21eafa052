import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Context } from 'koa'
import { CLIENT_TIME_LIMIT, OutcomeUnknown } from '../db/repeated-call.ts'
import { settledWithin } from '../time/index.ts'

/** Returns the limit on the time that a request waits for the database; receiving its body does not count. */
export function timeLimitOf(ctx: Context): ReturnType<typeof createTimeLimit> {
  ctx.state.timeLimit ??= createTimeLimit(CLIENT_TIME_LIMIT.respondsWithinMs)
  return ctx.state.timeLimit
}

/** Node keeps a list of timers for each duration, so waits of equal durations are cheaper. */
const STEP_MS = 100

/** `waitsMs` limits the total time of all work; the last wait may take up to STEP_MS longer. */
export function createTimeLimit(waitsMs: number) {
  const ending = new AbortController()
  let leftMs = waitsMs
  return {
    /**
     * Returns the result of database work. When the time of the request is up, `signal` aborts: work that has
     * not begun then never begins. For other work OutcomeUnknown is thrown.
     */
    async wait<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
      const started = performance.now()
      const limitMs = Math.ceil(leftMs / STEP_MS) * STEP_MS
      try {
        return await settledWithin(limitMs, work(ending.signal), async () => {
          ending.abort()
          // Work that rejects on the abort settles first: its error says that nothing began.
          await nextIteration()
          throw new OutcomeUnknown(new Error(`the database took longer than ${waitsMs} ms`))
        })
      } finally {
        leftMs -= performance.now() - started
      }
    },
  }
}
