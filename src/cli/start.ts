import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Config } from '../config/index.ts'
import { connect, SERVICE_ROLE } from '../db/client.ts'
import { currentLogin } from '../db/login.ts'
import { codeAge, OLDER_DATABASE } from '../db/migrate/code-age.ts'
import { migrate } from '../db/migrate/index.ts'
import { Interrupted } from '../db/migrate/locks.ts'
import { checkServer } from '../db/server.ts'
import { createResolver } from '../domains/resolver.ts'
import { SetupError } from '../errors.ts'
import { createEmailProvider, createSmsProvider } from '../providers/index.ts'
import {
  ROLES,
  type Role,
  type Service,
  type ServiceOptions,
  startService,
} from '../service/index.ts'
import { createLog } from '../telemetry/log.ts'
import { VERSION } from '../telemetry/version.ts'
import { withCommands } from './commands.ts'
import {
  type Database,
  describeDatabase,
  lacksTestClock,
  openDatabase,
  prepareEmbedded,
  secretsOf,
} from './database.ts'
import { DEMO_OWNER } from './demo.ts'
import { listenProblem, namingSetting } from './explain.ts'
import { signInPath } from './login.ts'
import { startMessage } from './start-message.ts'
import { stopSignal } from './stop-signal.ts'
import { USAGE } from './usage.ts'

/**
 * Longer than the 14 s that the parts of the service take at most, and shorter than the 20 s after which the
 * supervisors of src/docs/deployment.md kill the process: the log then says what happened.
 */
const STOPS_WITHIN_MS = 18_000

/** After a stop, the process exits by itself within this time unless unfinished work keeps it. */
const EXITS_WITHIN_MS = 500

/**
 * Runs the service until SIGTERM or SIGINT. Exits with 1 if a stop takes more than 18 s, or if the database does
 * not respond for 60 s. Throws SetupError if the database, a setting or a port cannot be used.
 */
export async function runStart(config: Config, args: string[]): Promise<void> {
  const roles = rolesOf(args)
  const log = createLog(config.logLevel)
  const stopping = stopSignal({ endsWithParent: config.isRunByNpm })
  const database = await openDatabase(config, { mayCreate: true })
  /** Exits with 1. Within seconds other processes take over the work of this one. */
  const exitFailed = (event: string) => {
    log.error(event)
    void database.close().finally(() => process.exit(1))
  }
  try {
    const secrets = await secretsOf(config)
    const { url, ownerUrl } = database
    const prepared = await namingSetting('DATABASE_URL', async () => {
      const result = await prepare(config, database, { log, signal: stopping })
      await checkSchema(config, url)
      return result
    })
    const service = await serve(config, {
      ...config,
      url,
      roles,
      log,
      createEmailProvider: (call) => createEmailProvider({ ...config, call, secrets }),
      createSmsProvider: (call, listener, log) =>
        createSmsProvider({ ...config, call, listener, log }),
      smsConcurrency: smsConcurrencyOf(config),
      hasSandboxMessages: config.email.provider !== 'sandbox',
      hasSandboxSms: config.sms.provider !== 'sandbox',
      secrets,
      resolver: createResolver({ servers: config.dnsServers, hasSandbox: config.hasSandboxDns }),
      // When the machine of the database is lost, TCP notices only after 15 minutes.
      onSilence: () => exitFailed('database silent for 60 s, exiting'),
    })
    const { address, metricsAddress } = service
    const place = describeDatabase(config, url)
    const hasSecrets = prepared !== null && (prepared.isNew || process.stdout.isTTY)
    const dashboardLink =
      hasSecrets && address ? `${address}${await linkOfDemo(ownerUrl, config)}` : null
    const message = startMessage({
      roles,
      service,
      database: place,
      embedded: prepared && {
        demo: prepared.demo,
        psqlUrl: ownerUrl,
        dataFolder: config.dataFolder,
      },
      hasSecrets,
      dashboardLink,
    })
    console.log(withCommands(config.commandPrefix, message))
    const addresses = { address, ...(metricsAddress && { metricsAddress }) }
    log.info({ version: VERSION, roles, ...addresses, database: place }, 'started')
    if (!stopping.aborted) await once(stopping, 'abort')
    log.info('stopping')
    // Without a limit, a stop would wait for a database that does not respond.
    const limit = setTimeout(() => exitFailed('service not stopped in time'), STOPS_WITHIN_MS)
    await service.stop()
    clearTimeout(limit)
    // graphile-worker sets another exit code after its tables were upgraded to a version that it does not know.
    process.exitCode = 0
  } catch (error) {
    // The process was stopped before the service began.
    if (!(error instanceof Interrupted)) throw error
  } finally {
    await database.close()
    // Work that has not stopped would keep the process alive.
    setTimeout(() => process.exit(), EXITS_WITHIN_MS).unref()
  }
}

/** Returns the path of a link that signs in as the demo's owner and as operator. */
async function linkOfDemo(ownerUrl: string, { clock }: Config): Promise<string> {
  const sql = connect(ownerUrl, { max: 1, clock })
  try {
    return await signInPath(sql, DEMO_OWNER)
  } finally {
    await sql.end()
  }
}

/** Starts the service. If its database or port cannot be used, throws SetupError: one line that names the setting. */
async function serve(config: Config, options: ServiceOptions): Promise<Service> {
  try {
    return await namingSetting('DATABASE_URL', () => startService(options))
  } catch (error) {
    const problem = listenProblem(error, config)
    if (problem === null) throw error
    throw new SetupError(problem, { cause: error })
  }
}

/** Enough for the next SMS to be ready while others wait for a response, but no more than leave within 10 s. */
function smsConcurrencyOf({ sms, workerConcurrency }: Config): number {
  return sms.provider === 'smpp' ? Math.min(2 * sms.window, 10 * sms.rate) : workerConcurrency
}

/** Brings the database to this version if the login owns it. Returns the demo of an embedded database. */
async function prepare(
  config: Config,
  database: Database,
  { log, signal }: { log: Logger; signal: AbortSignal },
) {
  const { url, ownerUrl } = database
  const sql = connect(config.isEmbedded ? ownerUrl : url, { max: 1, clock: config.clock })
  try {
    await checkServer(sql)
    if (config.isEmbedded) return await prepareEmbedded(config, sql, database, signal)
    const login = await currentLogin(sql)
    if (config.isProduction && login.excess !== null) {
      log.warn(
        { login: login.name, excess: login.excess },
        'login of DATABASE_URL has more rights than the service needs, see /docs/deployment#database-logins',
      )
    }
    // Newer code stays: a restart must not undo an upgrade that is in progress.
    if (config.migrateDatabaseUrl === null && login.isOwner) {
      const age = await codeAge(sql)
      if (age === 'older' || (age === 'current' && (await lacksTestClock(sql, config)))) {
        await migrate(url, { clock: config.clock, signal })
      }
    }
    return null
  } finally {
    await sql.end()
  }
}

/** Throws SetupError if the database is older than this version. Creates the next partitions. */
async function checkSchema({ clock }: Config, url: string): Promise<void> {
  const sql = connect(url, { max: 1, clock, role: SERVICE_ROLE })
  try {
    if ((await codeAge(sql)) === 'older') {
      throw new SetupError(OLDER_DATABASE)
    }
    // At each start, so that a service without a clock does not run out of them.
    await sql`select api.make_partitions()`
  } finally {
    await sql.end()
  }
}

function rolesOf(args: string[]): readonly Role[] {
  if (args.length === 0) return ROLES
  const [flag, name, ...rest] = args.flatMap((arg) => arg.split('='))
  const role = ROLES.find((known) => known === name)
  if (flag !== '--only' || !role || rest.length > 0) throw new SetupError(USAGE)
  return [role]
}
