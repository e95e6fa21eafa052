import { setTimeout as pause } from 'node:timers/promises'
import { codeOf } from './connection-errors.ts'

type ConnectorOptions = {
  /** Opens one connection within a time limit. */
  open(limitMs: number): Promise<void>
  /** How many connections should be opening now. */
  wanted(): number
  /** Called with an error that further attempts would repeat. */
  onPermanentError(error: unknown): void
}

/**
 * The time limit of the first attempt; it doubles with each failure. It is short because an attempt that hangs,
 * as in a proxy that lost its server, is best repeated.
 */
const FIRST_ATTEMPT_MS = 500
const LONGEST_ATTEMPT_MS = 5000
const RETRY_AFTER_MS = 100

/** Codes of errors that waiting does not fix: wrong password, unknown database, no right to a setting. */
const PERMANENT = /^(28|3D|42|22)...$/

/** Opens the connections of a pool, and tries again while that fails. */
export function createConnector({ open, wanted, onPermanentError }: ConnectorOptions) {
  let opening = 0
  let failures = 0
  let lastError: unknown

  /** Begins to open as many connections as are wanted; one at a time while attempts fail. */
  function openWanted() {
    while (opening < (failures > 0 ? Math.min(wanted(), 1) : wanted())) {
      opening += 1
      void openOne().finally(() => {
        opening -= 1
        openWanted()
      })
    }
  }

  async function openOne(): Promise<void> {
    const failuresBefore = failures
    try {
      await open(Math.min(FIRST_ATTEMPT_MS * 2 ** failuresBefore, LONGEST_ATTEMPT_MS))
      failures = 0
    } catch (error) {
      // Simultaneous attempts that fail count as one.
      failures = failuresBefore + 1
      lastError = error
      if (PERMANENT.test(codeOf(error))) onPermanentError(error)
      await pause(RETRY_AFTER_MS)
    }
  }

  return {
    openWanted,
    /** The error of the last attempt; null if it succeeded. */
    failure: () => (failures > 0 ? { error: lastError } : null),
  }
}
