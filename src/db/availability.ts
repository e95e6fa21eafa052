import type { Logger } from 'pino'
import {
  ConnectionLost,
  codeOf,
  isConnectionError,
  isSilence,
  messageOf,
  Unreachable,
} from './connection-errors.ts'
import type { Pool } from './pool.ts'
import { isReadOnlyError, READ_ONLY, readOnlyProblem, STANDBY } from './read-only.ts'
import { isTimeout } from './repeated-call.ts'

/** Whether the database takes the writes of this process, by the results of its heartbeats. */
export type Availability = ReturnType<typeof createAvailability>

type AvailabilityOptions = {
  log: Logger
  /** The connection of the heartbeat. */
  pool: Pick<Pool, 'use' | 'renew'>
  /** Throws if the server has no room for more data; a heartbeat may succeed all the same. */
  checkSpace(): Promise<unknown>
}

/** Drops the connections that were opened before this time of performance.now(). */
export type DropConnections = (openedBefore: number) => void

export const UNREACHABLE = 'the database cannot be reached'

const STARTING = 'the process is starting'

/** Five heartbeats. */
const BEHIND_AFTER_MS = 10_000

/** Heartbeats and small sends may succeed while there is no room for more data. */
const SPACE_CHECK_EVERY_MS = 60_000

/** Errors of a server that is out of a resource; writes that do not need it still succeed. */
const LACKS: Record<string, string> = {
  '53100': 'the database server is out of disk space',
  '53200': 'the database server is out of memory',
  '58030': 'the database server cannot read or write its disk',
}

/** Says which resource the server is out of; undefined for any other error. */
export function lackOf(error: unknown): string | undefined {
  return LACKS[codeOf(error)]
}

/** Creates the availability of a process; until its first heartbeat the process is starting. */
export function createAvailability(options: AvailabilityOptions) {
  const { log, pool, checkSpace } = options
  let problem: string | null = STARTING
  let acknowledgedAt: number | null = null
  let lostAt: number | null = null
  let spaceCheckedAt: number | null = null
  let wasSilent = false
  const onSilenceEnd: DropConnections[] = []
  /** The next heartbeat checks for space. */
  let isSpaceInDoubt = false
  /** The error code of the last heartbeat that failed. */
  let outageCode = ''
  /** Settles with whether the next heartbeat fails; set while reported errors wait for that. */
  let verdict: PromiseWithResolvers<boolean> | null = null
  let requestHeartbeat: () => void = () => undefined

  function acknowledged() {
    problem = null
    acknowledgedAt = performance.now()
    if (lostAt === null) return
    const seconds = Number(((acknowledgedAt - lostAt) / 1000).toFixed(1))
    // Without this, each of them would wait for its own limit, and a listener without one for ever.
    if (wasSilent) for (const drop of onSilenceEnd) drop(lostAt)
    wasSilent = false
    lostAt = null
    log.info({ seconds }, 'database available again')
  }

  function failed(error: unknown, reason: string) {
    problem = reason
    wasSilent ||= isSilence(error)
    outageCode = codeOf(error)
    verdict?.resolve(true)
    verdict = null
    // Before the first heartbeat, the start fails and reports the error.
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

  /** Returns whether the present outage explains an error of other work. */
  function isExplained(error: unknown): boolean {
    if (suggestsOutage(error) || error instanceof Unreachable || isTimeout(error)) return true
    const code = codeOf(error)
    if (code !== '' && code === outageCode) return true
    // The socket may also be one to a provider.
    return problem === UNREACHABLE && isConnectionError(error)
  }

  function nextVerdict(): Promise<boolean> {
    verdict ??= Promise.withResolvers()
    return verdict.promise
  }

  async function reasonOf(error: unknown): Promise<string> {
    if (isReadOnlyError(error)) {
      return (await pool.use(readOnlyProblem).catch(() => null)) ?? READ_ONLY
    }
    const lack = lackOf(error)
    if (lack) return lack
    if (isTimeout(error)) return 'the database is behind: it did not finish a write in time'
    if (codeOf(error) === STANDBY) return messageOf(error)
    if (isConnectionError(error)) return UNREACHABLE
    return `the database refused a write (${codeOf(error) || messageOf(error)})`
  }

  return {
    /** Says why the database does not take writes; null when it does. */
    problem(): string | null {
      const silentMs = performance.now() - (acknowledgedAt ?? 0)
      if (problem !== null || silentMs < BEHIND_AFTER_MS) return problem
      return `the database is behind: it has not acknowledged a write for ${Math.floor(silentMs / 1000)} s`
    },
    /** Runs a heartbeat; `problem` returns its result from then on. */
    async observe(heartbeat: () => Promise<void>) {
      const requested = verdict
      verdict = null
      const isCheckDue = isSpaceCheckDue()
      isSpaceInDoubt = false
      try {
        await heartbeat()
        if (isCheckDue) {
          await checkSpace().catch(throwOutage)
          spaceCheckedAt = performance.now()
        }
      } catch (error) {
        isSpaceInDoubt ||= isCheckDue || lackOf(error) !== undefined
        failed(error, await reasonOf(error))
        requested?.resolve(true)
        throw error
      }
      requested?.resolve(false)
      acknowledged()
    },
    /**
     * Records an error of other work. Returns whether an outage of the database explains it; the log has a line for
     * the outage itself. Requests a heartbeat if the database may be unavailable; the promise then settles with the
     * result of that heartbeat: if it succeeds, the error is about one connection or one statement.
     */
    report(error: unknown): boolean | Promise<boolean> {
      const lack = lackOf(error)
      if (lack) isSpaceInDoubt = true
      if (lostAt !== null) return isExplained(error)
      if (!suggestsOutage(error)) return false
      // A start that fails logs no outage.
      const explained = acknowledgedAt !== null && nextVerdict()
      // If default_transaction_read_only was switched off, only new connections can write.
      if (isReadOnlyError(error)) pool.renew()
      // One bad block, or one statement that is out of memory, is no outage. The next heartbeat decides, at its usual
      // time: its check of space writes 8 MB.
      if (!lack) requestHeartbeat()
      return explained
    },
    /** Records an error of the heartbeat's connection; if that is lost, the database counts as unreachable. */
    lost(error: unknown) {
      if (!isLoss(error)) return
      failed(error, UNREACHABLE)
      requestHeartbeat()
    },
    /**
     * Adds a function that is called when the database is available again after it did not respond. A server or a
     * machine that is frozen or lost closes no connections.
     */
    onSilenceEnd(drop: DropConnections) {
      onSilenceEnd.push(drop)
    },
    /** Sets the function that is called when a heartbeat is needed before its time. */
    onDue(heartbeat: () => void) {
      requestHeartbeat = heartbeat
    },
  }
}

function throwOutage(error: unknown): void {
  if (suggestsOutage(error)) throw error
}

/** Returns whether the database may be unavailable to other work as well. */
function suggestsOutage(error: unknown): boolean {
  const isStandby = codeOf(error) === STANDBY
  return lackOf(error) !== undefined || isReadOnlyError(error) || isStandby || isLoss(error)
}

/**
 * Returns whether a connection to the database was lost or could not be opened. False for a plain socket error,
 * which may be about a provider, and for a wait for a connection that other work used.
 */
function isLoss(error: unknown): boolean {
  if (error instanceof Unreachable) return error.code !== ''
  if (error instanceof ConnectionLost) return true
  return isConnectionError(error) && !codeOf(error).startsWith('E')
}
