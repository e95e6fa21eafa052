import { settledWithin } from '../time/index.ts'
import type { Api } from './api.gen.ts'
import { caller, isReplaced } from './call.ts'
import type { Pool } from './pool.ts'
import { asTimedOut, CLIENT_TIME_LIMIT, OutcomeUnknown } from './repeated-call.ts'

type Named<Name extends keyof Api> = [name: Name, args: Api[Name]['args']]

/** The results of two calls; a result is undefined if its call failed, for the reason `error`. */
export type PairResult<First extends keyof Api, Second extends keyof Api> = {
  first?: Api[First]['result']
  second?: Api[Second]['result']
  error?: unknown
}

/**
 * Sends two calls on one connection, the second without waiting for the result of the first. Each is a transaction
 * of its own; they run in order, and the second also runs if the first fails.
 */
export type CallPair = <First extends keyof Api, Second extends keyof Api>(
  first: Named<First>,
  second: Named<Second>,
) => Promise<PairResult<First, Second>>

/** Returns a CallPair that uses these connections, with the time limits of a request. */
export function pairCaller(pool: Pool): CallPair {
  const callPair = async <First extends keyof Api, Second extends keyof Api>(
    first: Named<First>,
    second: Named<Second>,
  ) => {
    const result: PairResult<First, Second> = {}
    try {
      await pool.use(
        async (sql) => {
          const send = caller(sql, { isPipelined: true })
          let [one, two] = await Promise.allSettled([send(...first), send(...second)])
          const call = caller(sql)
          const isOld = (result: typeof one | typeof two) =>
            result.status === 'rejected' && isReplaced(result.reason)
          if (isOld(one)) [one] = await Promise.allSettled([call(...first)])
          if (isOld(two)) [two] = await Promise.allSettled([call(...second)])
          if (one.status === 'fulfilled') result.first = one.value
          if (two.status === 'fulfilled') result.second = two.value
          // The pool replaces the connection if the error says that it is lost.
          for (const settled of [one, two]) if (settled.status === 'rejected') throw settled.reason
        },
        { waitMs: CLIENT_TIME_LIMIT.beginsWithinMs },
      )
    } catch (error) {
      result.error = asTimedOut(error)
    }
    return result
  }
  return (first, second) =>
    settledWithin(CLIENT_TIME_LIMIT.respondsWithinMs, callPair(first, second), () => {
      throw new OutcomeUnknown(
        new Error(`no response within ${CLIENT_TIME_LIMIT.respondsWithinMs} ms`),
      )
    })
}
