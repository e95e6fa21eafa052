import { setTimeout as pause } from 'node:timers/promises'
import { SetupError } from '../../errors.ts'
import type { Sql } from '../client.ts'
import { codeOf } from '../connection-errors.ts'
import { SQLSTATE_LOCK_NOT_AVAILABLE } from '../repeated-call.ts'

/**
 * How long migrate waits for a lock on a table. Callers that come later wait behind it, so it is no longer than a
 * caller may wait. It is shorter than deadlock_timeout (1 s): if a caller and migrate wait for each other, migrate
 * gives way.
 */
export const LOCK_TIMEOUT = '500ms'
const LOCK_PAUSE_MS = 500

/** migrate was aborted before the database was at this version. */
export class Interrupted extends SetupError {
  constructor(outcome: string) {
    super(`migrate was stopped while it waited. ${outcome}`)
  }
}

export type LockOptions = {
  /** How often the work is tried, about once a second. */
  attempts: number
  /** When aborted, the next attempt throws Interrupted. */
  signal: AbortSignal | undefined
  /** What is changed so far, for the error messages. */
  outcome: string
}

/**
 * Repeats work until it gets its locks; a transaction that does not get one leaves nothing behind. Throws
 * SetupError, which names the oldest transaction, after the last attempt.
 */
export async function withLocks(
  sql: Sql,
  work: () => Promise<unknown>,
  { attempts, signal, outcome }: LockOptions,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    if (signal?.aborted) throw new Interrupted(outcome)
    try {
      await work()
      return
    } catch (error) {
      if (codeOf(error) !== SQLSTATE_LOCK_NOT_AVAILABLE) throw error
      if (attempt === attempts) {
        throw new SetupError(`migrate could not get its lock${await oldestHolder(sql)}. ${outcome}`)
      }
      await pause(LOCK_PAUSE_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** Names the oldest transaction, which as a rule holds the lock; '' when there is no other. */
async function oldestHolder(sql: Sql): Promise<string> {
  const [oldest] = await sql<{ pid: number; application: string; since: string }[]>`
    select a.pid, a.application_name as application, to_char(a.xact_start, 'HH24:MI:SS') as since
    from pg_stat_activity a
    where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
    order by a.xact_start
    limit 1`
  if (!oldest) return ''
  return `; the oldest transaction is that of process ${oldest.pid} (${oldest.application}), since ${oldest.since}`
}
