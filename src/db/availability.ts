import type { Logger } from 'pino'
import { ConnectionLost, isConnectionError, messageOf, Unreachable } from './connection-errors.ts'
import type { Pool } from './pool.ts'
import { isReadOnlyError, READ_ONLY, readOnlyProblem, STANDBY } from './read-only.ts'

/** Whether the database takes the writes of this process, which its heartbeat tells. */
export type Availability = {
  /** What keeps the database from taking writes, for people; null when nothing does. */
  problem(): string | null
  /** Runs a heartbeat: what comes of it is what `problem` returns from then on. */
  observe(beat: () => Promise<void>): Promise<void>
  /**
   * Takes note of an error that other work met, and returns whether it comes from the database being away,
   * of which the log has a line already or gets one. Asks for a heartbeat where the error makes one due.
   */
  report(error: unknown): boolean
  /** Takes note of an error on the connection of the heartbeat, whose loss counts as that of the database. */
  lost(error: unknown): void
  /** Calls `beat` when a heartbeat is due before its time. */
  onDue(beat: () => void): void
}

export type AvailabilityOptions = {
  log: Logger
  /** The connection of the heartbeat. */
  pool: Pick<Pool, 'use' | 'renew'>
  /** Throws where the server has no room for more data; a heartbeat alone may need none. */
  checkSpace(): Promise<unknown>
}

export const UNREACHABLE = 'the database cannot be reached'

const STARTING = 'the process is starting'

/** The heartbeat is every 2 s. */
const BEHIND_AFTER_MS = 10_000

/** A heartbeat and small sends may find room while there is none for more data. */
const SPACE_CHECK_EVERY_MS = 60_000

/** Errors of a server that lacks something, which a write without need of it does not meet. */
const LACKS: Record<string, string> = {
  '53100': 'the database server is out of disk space',
  '53200': 'the database server is out of memory',
  '58030': 'the database server cannot read or write its disk',
}

/** What the server lacks, for people; undefined for any other error. */
export function lackOf(error: unknown): string | undefined {
  return LACKS[(error as { code?: string } | null)?.code ?? '']
}

/** Cancelled by statement_timeout, or by lock_timeout. */
const LATE = /^(57014|55P03)$/

export function createAvailability(options: AvailabilityOptions): Availability {
  const { log, pool, checkSpace } = options
  let problem: string | null = STARTING
  let acknowledgedAt: number | undefined
  let lostAt: number | undefined
  let lacksSpace = false
  let spaceCheckedAt = Number.NEGATIVE_INFINITY
  let beatNow: () => void = () => undefined

  function acknowledged() {
    problem = null
    acknowledgedAt = performance.now()
    if (lostAt === undefined) return
    const seconds = Number(((acknowledgedAt - lostAt) / 1000).toFixed(1))
    lostAt = undefined
    log.info({ seconds }, 'database available again')
  }

  function failed(error: unknown, reason: string) {
    problem = reason
    // Before the first heartbeat it is the start that fails.
    if (acknowledgedAt === undefined || lostAt !== undefined) return
    lostAt = performance.now()
    log.error({ reason, err: error }, 'database unavailable')
  }

  async function reasonOf(error: unknown): Promise<string> {
    const { code = '' } = (error ?? {}) as { code?: string }
    if (isReadOnlyError(error)) {
      return (await pool.use(readOnlyProblem).catch(() => null)) ?? READ_ONLY
    }
    const lack = lackOf(error)
    if (lack) return lack
    if (LATE.test(code)) return 'the database is behind: it did not finish a write in time'
    if (code === STANDBY) return messageOf(error)
    if (isConnectionError(error)) return UNREACHABLE
    return `the database refused a write (${code || messageOf(error)})`
  }

  return {
    problem() {
      const silentMs = performance.now() - (acknowledgedAt ?? 0)
      if (problem !== null || silentMs < BEHIND_AFTER_MS) return problem
      return `the database is behind: it has not acknowledged a write for ${Math.floor(silentMs / 1000)} s`
    },
    async observe(beat) {
      const lackedSpace = lacksSpace
      const isCheckDue = performance.now() - spaceCheckedAt > SPACE_CHECK_EVERY_MS
      try {
        await beat()
        // A start has its first heartbeat: reads are served also where there is no room.
        if (lackedSpace || (isCheckDue && acknowledgedAt !== undefined)) {
          await checkSpace().catch(throwLack)
          spaceCheckedAt = performance.now()
        }
      } catch (error) {
        if (lackOf(error)) lacksSpace = true
        failed(error, await reasonOf(error))
        throw error
      }
      // What was reported meanwhile is for the next heartbeat to check.
      if (lacksSpace && !lackedSpace) return
      lacksSpace = false
      acknowledged()
    },
    report(error) {
      const lack = lackOf(error)
      const isReadOnly = isReadOnlyError(error)
      const wasLost = lostAt !== undefined
      if (lack === undefined && !isReadOnly && !isLoss(error)) return wasLost
      if (lack) {
        lacksSpace = true
        failed(error, lack)
      }
      // That setting of a database holds for new connections alone.
      if (isReadOnly) pool.renew()
      if (!wasLost) beatNow()
      return true
    },
    lost(error) {
      if (!isLoss(error)) return
      failed(error, UNREACHABLE)
      beatNow()
    },
    onDue(beat) {
      beatNow = beat
    },
  }
}

function throwLack(error: unknown): void {
  if (lackOf(error)) throw error
}

/**
 * Whether a connection to the database was lost, or could not be made. Not a plain error of a socket, which
 * may be one to a provider, nor a wait for a connection that others used.
 */
function isLoss(error: unknown): boolean {
  if (error instanceof Unreachable) return error.code !== undefined
  if (error instanceof ConnectionLost) return true
  const { code } = (error ?? {}) as { code?: unknown }
  return isConnectionError(error) && !(typeof code === 'string' && code.startsWith('E'))
}
