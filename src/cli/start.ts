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
import { announcement } from './announce.ts'
import { withCommands } from './commands.ts'
import {
  type Database,
  describeDatabase,
  lacksTestClock,
  openDatabase,
  prepareEmbedded,
  secretsOf,
} from './database.ts'
import type { Demo } from './demo.ts'
import { blaming, listenProblem } from './explain.ts'
import { stopSignal } from './stop-signal.ts'
import { USAGE, UsageError } from './usage.ts'

/**
 * Longer than parts take that wait for one another, and within the 20 seconds after which src/docs has
 * supervisors kill us, so that the log says so.
 */
const STOPS_WITHIN_MS = 18_000

/** A process that has stopped, and is not kept by anything, exits before. */
const EXITS_WITHIN_MS = 500

/**
 * Runs the service until SIGTERM or SIGINT; exits with 1 when a stop takes more than 18 s or the database is
 * silent for 60 s. Throws SetupError where the database, a setting or a port cannot be used.
 */
export async function runStart(config: Config, args: string[]): Promise<void> {
  const roles = rolesOf(args)
  const log = createLog(config.logLevel)
  const stopping = stopSignal({ endsWithParent: config.isRunByNpm })
  const database = await openDatabase(config, { mayCreate: true })
  // Within seconds other processes take up what this one held.
  const giveUp = (event: string) => {
    log.error(event)
    void database.close().finally(() => process.exit(1))
  }
  try {
    const secrets = await secretsOf(config)
    const { url, ownerUrl } = database
    const prepared = await blaming('DATABASE_URL', async () => {
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
      // As when the machine of a database is lost: TCP would notice after a quarter of an hour.
      onSilence: () => giveUp('database silent for 60 s, exiting'),
    })
    const { address, metricsAddress } = service
    const place = describeDatabase(config, url)
    const announced = announcement({
      roles,
      service,
      database: place,
      embedded: prepared && {
        demo: prepared.demo,
        psqlUrl: ownerUrl,
        dataFolder: config.dataFolder,
      },
      hasSecrets: prepared !== null && (prepared.isNew || process.stdout.isTTY),
    })
    console.log(withCommands(config.commandPrefix, announced))
    const addresses = { address, ...(metricsAddress && { metricsAddress }) }
    log.info({ version: VERSION, roles, ...addresses, database: place }, 'started')
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
    // Work that did not stop in time would keep the process.
    setTimeout(() => process.exit(), EXITS_WITHIN_MS).unref()
  }
}

/** Starts the service; where its database or port cannot be used, the error is a line that names the setting. */
async function serve(config: Config, options: ServiceOptions): Promise<Service> {
  try {
    return await blaming('DATABASE_URL', () => startService(options))
  } catch (error) {
    const problem = listenProblem(error, config)
    if (problem === null) throw error
    throw new SetupError(problem, { cause: error })
  }
}

/** So many that the next are ready while some are on their way, but no more than soon have their turn. */
function smsConcurrencyOf({ sms, workerConcurrency }: Config): number {
  return sms.provider === 'smpp' ? Math.min(2 * sms.window, 10 * sms.rate) : workerConcurrency
}

type Prepared = { demo: Demo; isNew: boolean } | null

/** Brings the database to this version where that is ours to do; an embedded database has a demo. */
async function prepare(
  config: Config,
  database: Database,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<Prepared> {
  const { url, ownerUrl } = database
  const sql = connect(config.isEmbedded ? ownerUrl : url, { max: 1, clock: config.clock })
  try {
    await checkServer(sql)
    if (config.isEmbedded) return await prepareEmbedded(config, sql, database, signal)
    const login = await currentLogin(sql)
    if (config.isProduction && login.excess !== null) {
      log.warn(
        { login: login.name, excess: login.excess },
        'the login of DATABASE_URL may do more than the service needs: see /docs/deploying#logins',
      )
    }
    // To be started again must not undo an upgrade that is under way, so what is newer stays.
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

/** Throws where the database is older than this version, and makes the partitions that come next. */
async function checkSchema({ clock }: Config, url: string): Promise<void> {
  const sql = connect(url, { max: 1, clock, role: SERVICE_ROLE })
  try {
    if ((await codeAge(sql)) === 'older') {
      throw new SetupError(OLDER_DATABASE)
    }
    // Each start, so that a service without a clock does not run out of them while it is restarted.
    await sql`select api.make_partitions()`
  } finally {
    await sql.end()
  }
}

function rolesOf(args: string[]): readonly Role[] {
  if (args.length === 0) return ROLES
  const [flag, name, ...rest] = args.flatMap((arg) => arg.split('='))
  const role = ROLES.find((known) => known === name)
  if (flag !== '--only' || !role || rest.length > 0) throw new UsageError(USAGE)
  return [role]
}
