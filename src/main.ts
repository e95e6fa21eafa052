import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type Config, ConfigError, readConfig } from './config.ts'
import { Breaking } from './db/breaking.ts'
import { connect, type Sql } from './db/client.ts'
import { codeAge } from './db/code-age.ts'
import { openEmbedded } from './db/embedded.ts'
import { NotInstalled } from './db/embedded-binaries.ts'
import { secretKey } from './db/kept-file.ts'
import { Interrupted, migrate } from './db/migrate.ts'
import { Outdated } from './db/readiness.ts'
import { generateTypes } from './db/types.ts'
import { examine } from './doctor.ts'
import { createResolver } from './domains/resolver.ts'
import { createLog } from './log.ts'
import { createEmailProvider, createSmsProvider } from './providers/index.ts'
import { createSecrets } from './secrets.ts'
import { type Demo, demoOf, firstSteps, seed } from './seed.ts'
import { ROLES, type Role, type Service, startService } from './service.ts'
import { formatTable } from './table.ts'

const USAGE = `usage: npm start [-- --only api|worker|clock]     run the service
       npm run migrate [-- --breaking]            bring the database to this version
       npm run seed                               make a demo organisation, print its keys
       npm run sql -- "select * from ops.help"    ask the database, print a table
       npm run doctor                             check everything, say the cures
       npm run types                              write src/db/api.gen.ts anew`

/**
 * Longer than parts take that wait for one another, and within the 20 seconds after which src/docs has
 * supervisors kill us, so that the log says so.
 */
const STOPS_WITHIN_MS = 18_000

type Database = { url: string; close(): Promise<void> }

/** Something the person at the keyboard can mend: printed as it is, without a stack. */
class UsageError extends Error {}

/** What the system says when no database answers or the port is taken. */
const MENDABLE = /^(ECONNREFUSED|ENOTFOUND|EADDRINUSE|EADDRNOTAVAIL|EACCES)$/

async function openDatabase(config: Config): Promise<Database> {
  if (config.databaseUrl) return { url: config.databaseUrl, close: async () => undefined }
  return openEmbedded(config.dataFolder)
}

/** Runs `work` with the owner's connection to a database that is opened, and closed, for it. */
async function withDatabase<Result>(
  config: Config,
  work: (sql: Sql, url: string) => Promise<Result>,
  { hasSqlNames = false } = {},
): Promise<Result> {
  const database = await openDatabase(config)
  const sql = connect(database.url, { max: 1, clock: config.clock, hasSqlNames })
  try {
    return await work(sql, database.url)
  } finally {
    await sql.end()
    await database.close()
  }
}

async function start(config: Config, args: string[]) {
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

async function secretsOf({ secretKeys, dataFolder }: Config) {
  return createSecrets(secretKeys ?? [await secretKey(dataFolder)])
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

/** Aborted at the first SIGTERM or SIGINT; at a second one the process ends at once. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stopping.abort()
      process.once(signal, () => process.exit(1))
    })
  }
  return stopping.signal
}

async function runSql(config: Config, [text, ...rest]: string[]) {
  if (!text || rest.length > 0) throw new UsageError('usage: npm run sql -- "select …"')
  const ask = async (sql: Sql) => {
    const answer = await sql.unsafe(text).catch((error) => {
      if (MENDABLE.test(error.code)) throw error
      throw new UsageError(error.hint ? `${error.message}\nhint: ${error.hint}` : error.message)
    })
    // Several statements have several answers.
    const results = Array.isArray(answer[0]) ? (answer as unknown as (typeof answer)[]) : [answer]
    for (const rows of results) {
      const columns = rows.columns?.map((column) => column.name) ?? []
      console.log(columns.length > 0 ? formatTable(rows, columns) : (rows.command ?? ''))
    }
  }
  await withDatabase(config, ask, { hasSqlNames: true })
}

async function runDoctor(config: Config) {
  // Of a database elsewhere there is no key but the one that is set.
  const hasKey = config.databaseUrl === null || config.secretKeys !== null
  const secrets = hasKey ? await secretsOf(config) : null
  const checks = await withDatabase(config, (sql) => examine(sql, config, secrets))
  for (const { what, isWell, cure } of checks) {
    console.log(isWell ? `ok    ${what}` : `WRONG ${what}: ${cure}`)
  }
  if (checks.some(({ isWell }) => !isWell)) process.exitCode = 1
}

async function runSeed(config: Config) {
  await withDatabase(config, async (sql) => {
    const demo = config.databaseUrl ? await seed(sql) : await demoOf(sql, config.dataFolder)
    console.log(`live key  ${demo.liveKey}\ntest key  ${demo.testKey}\n`)
    const address = config.publicUrl ?? `http://${config.host}:${config.port}`
    console.log(firstSteps(address, demo))
  })
}

async function runTypes(config: Config) {
  await withDatabase(config, async (sql, url) => {
    await migrate(url, { clock: config.clock })
    await writeFile(new URL('db/api.gen.ts', import.meta.url), await generateTypes(sql))
  })
}

async function runMigrate(config: Config, args: string[]) {
  const isBreaking = args.length === 1 && args[0] === '--breaking'
  if (args.length > 0 && !isBreaking) throw new UsageError(USAGE)
  const signal = stopSignal()
  await withDatabase(config, (_, url) => migrate(url, { clock: config.clock, isBreaking, signal }))
}

const commands: Record<string, (config: Config, args: string[]) => Promise<void>> = {
  start,
  migrate: runMigrate,
  seed: runSeed,
  sql: runSql,
  doctor: runDoctor,
  types: runTypes,
  help: async () => console.log(USAGE),
}

async function main([name = 'help', ...args]: string[]) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(USAGE)
  await command(readConfig(process.env, { isServing: name === 'start' }), args)
}

await main(process.argv.slice(2)).catch((error) => {
  const isExpected =
    [UsageError, ConfigError, NotInstalled, Breaking, Interrupted, Outdated].some(
      (kind) => error instanceof kind,
    ) || MENDABLE.test(error.code)
  console.error(isExpected ? error.message || error.code : error)
  process.exitCode = 1
})
