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
   * Records an error from other work and returns whether an outage of the database explains it, which has its
   * own line in the log. Requests a heartbeat if the database may be unavailable; then the promise settles
   * with the result of that heartbeat: after a success the error is about one connection or one statement.
   */
  report(error: unknown): boolean | Promise<boolean>
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

/** The server is out of a resource; writes that do not need it still succeed. */
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

/** Creates the availability of a process; until its first heartbeat the process is starting. */
export function createAvailability(options: AvailabilityOptions): Availability {
  const { log, pool, checkSpace } = options
  let problem: string | null = STARTING
  let acknowledgedAt: number | null = null
  let lostAt: number | null = null
  let spaceCheckedAt: number | null = null
  /** The next heartbeat checks for space. */
  let isSpaceInDoubt = false
  /** The code of the error that the last failed heartbeat met. */
  let outageCode = ''
  /** Whether the next heartbeat fails, for errors that were reported since the last one began. */
  let verdict: PromiseWithResolvers<boolean> | null = null
  let beatNow: () => void = () => undefined

  function acknowledged() {
    problem = null
    acknowledgedAt = performance.now()
    if (lostAt === null) return
    const seconds = Number(((acknowledgedAt - lostAt) / 1000).toFixed(1))
    lostAt = null
    log.info({ seconds }, 'database available again')
  }

  function failed(error: unknown, reason: string) {
    problem = reason
    outageCode = codeOf(error)
    verdict?.resolve(true)
    verdict = null
    // Before the first heartbeat it is the start that fails.
    if (acknowledgedAt === null || lostAt !== null) return
    lostAt = performance.now()
    log.error({ reason, err: error }, 'database unavailable')
  }

  function isSpaceCheckDue(): boolean {
    // The first heartbeat skips this check, so that a process can start on a full disk and serve reads.
    if (acknowledgedAt === null) return false
    if (isSpaceInDoubt || spaceCheckedAt === null) return true
    return performance.now() - spaceCheckedAt > SPACE_CHECK_EVERY_MS
  }

  /** Whether the outage that began at lostAt explains an error of other work. */
  function isExplained(error: unknown): boolean {
    const code = codeOf(error)
    if (suggestsOutage(error) || error instanceof Unreachable || LATE.test(code)) return true
    if (code !== '' && code === outageCode) return true
    // A plain error of a socket may be one to a provider.
    return problem === UNREACHABLE && isConnectionError(error)
  }

  function nextVerdict(): Promise<boolean> {
    verdict ??= Promise.withResolvers()
    return verdict.promise
  }

  async function reasonOf(error: unknown): Promise<string> {
    const code = codeOf(error)
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
      const asked = verdict
      verdict = null
      const isCheckDue = isSpaceCheckDue()
      isSpaceInDoubt = false
      try {
        await beat()
        if (isCheckDue) {
          await checkSpace().catch(throwOutage)
          spaceCheckedAt = performance.now()
        }
      } catch (error) {
        isSpaceInDoubt ||= isCheckDue || lackOf(error) !== undefined
        failed(error, await reasonOf(error))
        asked?.resolve(true)
        throw error
      }
      asked?.resolve(false)
      acknowledged()
    },
    report(error) {
      const lack = lackOf(error)
      if (lack) isSpaceInDoubt = true
      if (lostAt !== null) return isExplained(error)
      if (!suggestsOutage(error)) return false
      // A start that fails has no line for an outage.
      const explained = acknowledgedAt !== null && nextVerdict()
      // The setting applies only to new connections.
      if (isReadOnlyError(error)) pool.renew()
      // One bad block, or one statement out of memory, is no outage, but can fail at each attempt. So the next
      // heartbeat decides, at its usual time: its check of space writes 8 MB.
      if (!lack) beatNow()
      return explained
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

function throwOutage(error: unknown): void {
  if (suggestsOutage(error)) throw error
}

/** Whether the database may be unavailable to other work as well. */
function suggestsOutage(error: unknown): boolean {
  const isStandby = codeOf(error) === STANDBY
  return lackOf(error) !== undefined || isReadOnlyError(error) || isStandby || isLoss(error)
}

/**
 * Whether a connection to the database was lost, or could not be made. Not a plain error of a socket, which
 * may be one to a provider, nor a wait for a connection that others used.
 */
function isLoss(error: unknown): boolean {
  if (error instanceof Unreachable) return error.code !== undefined
  if (error instanceof ConnectionLost) return true
  return isConnectionError(error) && !codeOf(error).startsWith('E')
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}
