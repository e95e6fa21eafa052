import type { Logger } from 'pino'
import { signatures } from '../db/api.gen.ts'
import { createAvailability } from '../db/availability.ts'
import { type ClockSettings, SERVICE_ROLE } from '../db/client.ts'
import { readContract } from '../db/contract.ts'
import { codeAge } from '../db/migrate/code-age.ts'
import { foreignQueues } from '../db/migrate/queues.ts'
import { codeSha256 } from '../db/migrate/sql-files.ts'
import { createPools } from '../db/pools.ts'
import { quietLog } from '../db/quiet-log.ts'
import { createContractCheck, createReadiness } from '../db/readiness.ts'
import { SetupError } from '../errors.ts'

type DatabaseOptions = { url: string; clock: ClockSettings; log: Logger }

/** The connections of one process of the service, and what it knows about the database. */
type ServiceDatabase = Awaited<ReturnType<typeof openServiceDatabase>>

/** Creates the pools of this process; they connect when they get work. */
export async function openServiceDatabase({ url, clock, log }: DatabaseOptions) {
  const pools = createPools(url, {
    role: SERVICE_ROLE,
    clock,
    onError: (error) => availability.report(error),
    onHeartbeatError: (error) => availability.lost(error),
  })
  const availability = createAvailability({
    log,
    pool: pools.heartbeatPool,
    checkSpace: () => pools.heartbeat('check_space', {}),
  })
  const checkContract = createContractCheck(
    { read: () => pools.use(readContract), age: () => pools.use(codeAge), call: pools.probe },
    { sha256: await codeSha256(), needs: signatures },
  )
  availability.onSilenceEnd(pools.dropOpenedBefore)
  return {
    pools,
    availability,
    /** Logs errors that an outage of the database explains at level debug. */
    log: quietLog(log, availability),
    /** Says why the SQL code in the database does not fit this version; null when it does. */
    checkContract,
    /** Says what keeps this process from serving; null when nothing does. */
    readiness: createReadiness(availability, checkContract),
  }
}

/**
 * Throws SetupError if this process cannot serve with the code, the queues or the clock of the database, or if the cell
 * is being divided. From then on no division begins until the process ends.
 */
export async function checkDatabase(
  { pools, checkContract }: ServiceDatabase,
  { roles, clock }: { roles: readonly string[]; clock: ClockSettings },
): Promise<void> {
  const problem = (await checkContract()) ?? (await pools.use((sql) => foreignQueues(sql, roles)))
  if (problem !== null) throw new SetupError(`${problem}; upgrade this process`)
  // On the connection that this process keeps, before it accepts anything.
  const division = await pools.heartbeat('check_division', {})
  if (division !== null) throw new SetupError(division)
  const isTestClock = Object.keys(clock).length > 0
  if (isTestClock && !(await pools.work('has_test_clock', {}))) {
    throw new SetupError(
      'POSTGRAM_NOW is set, but this database keeps real time: migrate with POSTGRAM_NOW set',
    )
  }
}
