import { setTimeout as pause } from 'node:timers/promises'
import { Refusal } from '../errors.ts'
import type { Api } from './api.gen.ts'
import type { Call } from './call.ts'
import { ConnectionLost, Unreachable } from './connection-errors.ts'

/** The connection was lost, and the call could not be repeated in time: it may have taken effect or not. */
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

/** Whether an error would meet each call of a batch alone as well: about the database, not about one of them. */
export function concernsAll(error: unknown): boolean {
  return [Unreachable, OutcomeUnknown, TimedOut].some((kind) => error instanceof kind)
}

/** Whether lock_timeout or statement_timeout cancelled a statement: as a rule it waited for another's lock. */
export function isTimeout(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === SQLSTATE_LOCK_NOT_AVAILABLE || code === SQLSTATE_CANCELLED
}

const SQLSTATE_LOCK_NOT_AVAILABLE = '55P03'
const SQLSTATE_CANCELLED = '57014'

export type RepeatOptions = {
  /** How long attempts may begin. */
  beginsWithinMs: number
  /** When OutcomeUnknown is thrown at the latest, although an attempt is under way. */
  answersWithinMs: number
}

/** Many clients give up after 10 s. */
export const CLIENT_TIME_LIMIT: RepeatOptions = { beginsWithinMs: 8000, answersWithinMs: 9500 }

const REPEAT_AFTER_MS = 50

/**
 * The same Call, except that a function in `names` is called again when its connection was lost, so that
 * its caller gets a true answer. Repeating such a function does nothing twice: it reads, or keeps its
 * answer under a key, or finds that its work is done.
 */
export function repeatedCall(
  call: Call,
  names: ReadonlySet<keyof Api>,
  { beginsWithinMs, answersWithinMs }: RepeatOptions = CLIENT_TIME_LIMIT,
): Call {
  const repeat: Call = async (name, args) => {
    const start = performance.now()
    let lost: unknown
    for (;;) {
      const waitMs = Math.max(0, beginsWithinMs - (performance.now() - start))
      try {
        return await call(name, args, { waitMs })
      } catch (error) {
        // A refusal came from the server that had seen the earlier attempts, so it settles them.
        if (error instanceof ConnectionLost) lost = error
        else if (lost === undefined || error instanceof Refusal) throw asTimedOut(error)
        if (performance.now() - start + REPEAT_AFTER_MS > beginsWithinMs) {
          throw new OutcomeUnknown(lost)
        }
      }
      await pause(REPEAT_AFTER_MS)
    }
  }
  return (name, args, options) =>
    names.has(name)
      ? answeredWithin(answersWithinMs, repeat(name, args))
      : call(name, args, options)
}

function asTimedOut(error: unknown): unknown {
  return (error as { code?: unknown }).code === SQLSTATE_CANCELLED ? new TimedOut(error) : error
}

async function answeredWithin<Result>(limitMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new OutcomeUnknown(new Error(`no answer within ${limitMs} ms`))),
    limitMs,
  )
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
