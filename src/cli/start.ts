import { once } from 'node:events'
import type { Config } from '../config.ts'
import { connect } from '../db/client.ts'
import { codeAge } from '../db/code-age.ts'
import { Interrupted, migrate } from '../db/migrate.ts'
import { createResolver } from '../domains/resolver.ts'
import { createLog } from '../log.ts'
import { createEmailProvider, createSmsProvider } from '../providers/index.ts'
import { type Demo, demoOf, firstSteps } from '../seed.ts'
import { ROLES, type Role, type Service, startService } from '../service.ts'
import { openDatabase, secretsOf } from './database.ts'
import { stopSignal } from './stop-signal.ts'
import { USAGE, UsageError } from './usage.ts'

/**
 * Longer than parts take that wait for one another, and within the 20 seconds after which src/docs has
 * supervisors kill us, so that the log says so.
 */
const STOPS_WITHIN_MS = 18_000

export async function runStart(config: Config, args: string[]): Promise<void> {
  const roles = rolesOf(args)
  const log = createLog(config.logLevel)
  const stopping = stopSignal()
  const database = await openDatabase(config)
  const giveUp = (why: string) => {
    log.error(`${why}; what this process held is free within seconds`)
    void database.close().finally(() => process.exit(1))
  }
  try {
    const secrets = await secretsOf(config)
    const demo = await prepare(config, database.url, stopping)
    const service = await startService({
      ...config,
      url: database.url,
      roles,
      log,
      createEmailProvider: (call) => createEmailProvider({ ...config, call, secrets }),
      createSmsProvider: (call, listener, log) =>
        createSmsProvider({ ...config, call, listener, log }),
      smsConcurrency: smsConcurrencyOf(config),
      hasRehearsals: config.email.provider !== 'sandbox',
      hasSmsRehearsals: config.sms.provider !== 'sandbox',
      secrets,
      resolver: createResolver({ servers: config.dnsServers, hasSandbox: config.hasSandboxDns }),
      // As when the machine of a database is lost: TCP would notice after a quarter of an hour.
      onSilence: () => giveUp('the database has said nothing for a minute'),
    })
    announceStart(config, database.url, roles, service, demo)
    const { address, metricsAddress } = service
    log.info({ roles, address, ...(metricsAddress && { metricsAddress }) }, 'started')
    if (!stopping.aborted) await once(stopping, 'abort')
    log.info('stopping')
    // A database that says nothing any more would be waited for without end.
    const limit = setTimeout(() => giveUp('not all of it stopped in time'), STOPS_WITHIN_MS)
    await service.stop()
    clearTimeout(limit)
    // graphile-worker sets one of its own when its tables were upgraded past what it knows.
    process.exitCode = 0
  } catch (error) {
    // Asked to stop before it began.
    if (!(error instanceof Interrupted)) throw error
  } finally {
    await database.close()
  }
}

/** So many that the next are ready while some are on their way, but no more than soon have their turn. */
function smsConcurrencyOf({ sms, workerConcurrency }: Config): number {
  return sms.provider === 'smpp' ? Math.min(2 * sms.window, 10 * sms.rate) : workerConcurrency
}

/**
 * Migrates where the database is older than this version; an embedded database has a demo. One that is
 * newer is left as it is: to be started again must not undo an upgrade that is under way.
 */
async function prepare(config: Config, url: string, signal: AbortSignal): Promise<Demo | null> {
  const sql = connect(url, { max: 1, clock: config.clock })
  try {
    const age = await codeAge(sql)
    // Of an embedded database this is the only process.
    const isLeft = age === 'ours' || (age === 'newer' && config.databaseUrl !== null)
    if (!isLeft) await migrate(url, { clock: config.clock, signal })
    // Each start, so that a service without a clock does not run out of them while it is restarted.
    else await sql`select api.make_partitions()`
    return config.databaseUrl === null ? await demoOf(sql, config.dataFolder) : null
  } finally {
    await sql.end()
  }
}

function announceStart(
  config: Config,
  url: string,
  roles: readonly Role[],
  { address, metricsAddress }: Service,
  demo: Demo | null,
) {
  const lines = [`Postgram runs (${roles.join(', ')}).`]
  if (address) lines.push(`  API       ${address}/v1`)
  if (metricsAddress) lines.push(`  metrics   ${metricsAddress}/metrics`)
  if (demo) lines.push(`  live key  ${demo.liveKey}`, `  test key  ${demo.testKey}`)
  if (config.databaseUrl === null) lines.push(`  psql      ${url}`)
  if (address && demo) lines.push('', firstSteps(address, demo))
  console.log(lines.join('\n'))
}

function rolesOf(args: string[]): readonly Role[] {
  if (args.length === 0) return ROLES
  const [flag, name, ...rest] = args.flatMap((arg) => arg.split('='))
  const role = ROLES.find((known) => known === name)
  if (flag !== '--only' || !role || rest.length > 0) throw new UsageError(USAGE)
  return [role]
}
