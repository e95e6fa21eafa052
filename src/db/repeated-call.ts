import { setTimeout as pause } from 'node:timers/promises'
import { Refusal } from '../errors.ts'
import { settledWithin } from '../time/index.ts'
import type { Api } from './api.gen.ts'
import type { Call } from './call.ts'
import { ConnectionLost, codeOf, Unreachable } from './connection-errors.ts'

/** The connection was lost and the call could not be repeated in time: it may have taken effect or not. */
export class OutcomeUnknown extends Error {
  constructor(cause: unknown) {
    super('it is unknown whether a call took effect', { cause })
  }
}

/** The server cancelled the statement at statement_timeout and rolled it back. */
export class TimedOut extends Error {
  constructor(cause: unknown) {
    super('the database took too long and rolled the call back', { cause })
  }
}

/** Returns whether an error is about the database: each call of a batch would fail with it alone as well. */
export function concernsAll(error: unknown): boolean {
  return [Unreachable, OutcomeUnknown, TimedOut].some((kind) => error instanceof kind)
}

/** Returns whether lock_timeout or statement_timeout cancelled a statement, which as a rule waited for a lock. */
export function isTimeout(error: unknown): boolean {
  return [SQLSTATE_LOCK_NOT_AVAILABLE, SQLSTATE_CANCELLED].includes(codeOf(error))
}

/** Returns the error of a call; TimedOut if the server cancelled its statement. */
export function asTimedOut(error: unknown): unknown {
  return codeOf(error) === SQLSTATE_CANCELLED ? new TimedOut(error) : error
}

/** Returns whether the same call may succeed later: the database was away, or others held a lock for too long. */
export function isTransient(error: unknown): boolean {
  return concernsAll(error) || error instanceof ConnectionLost || isTimeout(error)
}

export const SQLSTATE_LOCK_NOT_AVAILABLE = '55P03'
const SQLSTATE_CANCELLED = '57014'

export type RepeatOptions = {
  /** The last call begins within this time. */
  beginsWithinMs: number
  /** After this time OutcomeUnknown is thrown, although a call is in progress. */
  respondsWithinMs: number
}

/** Many clients stop waiting after 10 s. */
export const CLIENT_TIME_LIMIT: RepeatOptions = { beginsWithinMs: 8000, respondsWithinMs: 9500 }

const REPEAT_AFTER_MS = 50

/**
 * Returns the same Call, except that it repeats a function in `names` whose connection was lost, so that the caller
 * gets the true outcome. Those functions may be repeated: they read, or store their response under a key, or find
 * their work done.
 */
export function repeatedCall(
  call: Call,
  names: ReadonlySet<keyof Api>,
  { beginsWithinMs, respondsWithinMs }: RepeatOptions = CLIENT_TIME_LIMIT,
): Call {
  const repeat: Call = async (name, args) => {
    const start = performance.now()
    let lost: unknown
    for (;;) {
      const waitMs = Math.max(0, beginsWithinMs - (performance.now() - start))
      try {
        return await call(name, args, { waitMs })
      } catch (error) {
        // A refusal of a repeated call is the outcome: the server has seen the earlier calls.
        if (error instanceof ConnectionLost) lost = error
        else if (lost === undefined || error instanceof Refusal) {
          throw asTimedOut(error)
        }
        if (performance.now() - start + REPEAT_AFTER_MS > beginsWithinMs) {
          throw new OutcomeUnknown(lost)
        }
      }
      await pause(REPEAT_AFTER_MS)
    }
  }
  return (name, args, options) =>
    names.has(name)
      ? settledWithin(respondsWithinMs, repeat(name, args), () => {
          throw new OutcomeUnknown(new Error(`no response within ${respondsWithinMs} ms`))
        })
      : call(name, args, options)
}
