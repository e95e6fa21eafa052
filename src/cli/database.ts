import { resolve } from 'node:path'
import type { Config } from '../config/index.ts'
import { createSecrets } from '../crypto/secrets.ts'
import { describeAddress } from '../db/address.ts'
import { type ClientOptions, connect, type Sql } from '../db/client.ts'
import { hasEmbedded, openEmbedded } from '../db/embedded/index.ts'
import { secretKey } from '../db/kept-file.ts'
import { ensureLogin } from '../db/login.ts'
import { codeAge } from '../db/migrate/code-age.ts'
import { migrate } from '../db/migrate/index.ts'
import { SetupError } from '../errors.ts'
import { DEMO_OWNER, type Demo, demoOf } from './demo.ts'
import { namingSetting } from './explain.ts'

export type Database = {
  /** The address of the service's login. */
  url: string
  /** The address of the owner; the same as `url` without MIGRATE_DATABASE_URL. */
  ownerUrl: string
  close(): Promise<void>
}

/** Opens the configured database. With `mayCreate`, creates an embedded one if there is none. Throws SetupError. */
export async function openDatabase(
  config: Config,
  { mayCreate = false }: { mayCreate?: boolean } = {},
): Promise<Database> {
  const { databaseUrl, migrateDatabaseUrl } = config
  const ownerUrl = migrateDatabaseUrl ?? databaseUrl
  if (ownerUrl) {
    return { url: databaseUrl ?? ownerUrl, ownerUrl, close: async () => undefined }
  }
  if (config.embeddedProblem !== null) throw new SetupError(config.embeddedProblem)
  if (!mayCreate && !(await hasEmbedded(config.dataFolder))) {
    throw new SetupError(
      `There is no database: set DATABASE_URL, or run npm start, which creates one in ${resolve(config.dataFolder)}.`,
    )
  }
  const { url, serviceUrl, close } = await openEmbedded(config.dataFolder)
  return { url: serviceUrl, ownerUrl: url, close }
}

/** Returns the name and place of a database, without its password. */
export function describeDatabase({ isEmbedded, dataFolder }: Config, url: string): string {
  const place = describeAddress(url)
  return isEmbedded ? `${place}, embedded in ${resolve(dataFolder)}` : place
}

/**
 * Opens the database, runs `work` with the owner's connection, and closes it. Prints on stderr which database that
 * is, as a program may read stdout.
 */
export async function asOwner<Result>(
  config: Config,
  work: (sql: Sql, database: Database) => Promise<Result>,
  {
    mayCreate = false,
    ...options
  }: Pick<ClientOptions, 'hasSqlNames' | 'isReadOnly'> & { mayCreate?: boolean } = {},
): Promise<Result> {
  const database = await openDatabase(config, { mayCreate })
  console.error(`database: ${describeDatabase(config, database.ownerUrl)}`)
  const sql = connect(database.ownerUrl, { max: 1, clock: config.clock, ...options })
  try {
    return await namingSetting(ownerVariable(config), () => work(sql, database))
  } finally {
    await sql.end()
    await database.close()
  }
}

/** The name of the setting that holds the owner's address. */
export function ownerVariable({ migrateDatabaseUrl }: Config): string {
  return migrateDatabaseUrl ? 'MIGRATE_DATABASE_URL' : 'DATABASE_URL'
}

/**
 * Brings an embedded database to this version, and creates its service login and its demo organisation. The owner of
 * that is an operator, too.
 */
export async function prepareEmbedded(
  config: Config,
  sql: Sql,
  { url, ownerUrl }: Database,
  signal?: AbortSignal,
): Promise<{ demo: Demo; isNew: boolean }> {
  // No other version uses it, so the code of a newer version is replaced as well.
  if ((await codeAge(sql)) !== 'current' || (await lacksTestClock(sql, config))) {
    await migrate(ownerUrl, { clock: config.clock, ...(signal && { signal }) })
  }
  await ensureLogin(sql, url)
  const demo = await demoOf(sql, config.dataFolder)
  await sql`select ops.make_operator(${DEMO_OWNER})`
  return demo
}

/** Whether POSTGRAM_NOW is set although the database, which is of this version, keeps real time. */
export async function lacksTestClock(sql: Sql, { clock }: Config): Promise<boolean> {
  if (Object.keys(clock).length === 0) return false
  const [{ isOn }] = await sql<[{ isOn: boolean }]>`select api.has_test_clock() as is_on`
  return !isOn
}

/** Returns the secrets of SECRET_KEY; without it, those of the key in the data folder, which is created if missing. */
export async function secretsOf({ secretKeys, dataFolder }: Config) {
  return createSecrets(secretKeys ?? [await secretKey(dataFolder)])
}
