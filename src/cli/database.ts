import type { Config } from '../config.ts'
import { type ClientOptions, connect, type Sql } from '../db/client.ts'
import { openEmbedded } from '../db/embedded.ts'
import { secretKey } from '../db/kept-file.ts'
import { createSecrets } from '../secrets.ts'
import { blaming } from './explain.ts'

export type Database = {
  /** The address of the service's login. */
  url: string
  /** The address of the owner; the same where there is no MIGRATE_DATABASE_URL. */
  ownerUrl: string
  close(): Promise<void>
}

export async function openDatabase(config: Config): Promise<Database> {
  const { databaseUrl, migrateDatabaseUrl } = config
  const ownerUrl = migrateDatabaseUrl ?? databaseUrl
  if (ownerUrl) {
    return { url: databaseUrl ?? ownerUrl, ownerUrl, close: async () => undefined }
  }
  const { url, serviceUrl, close } = await openEmbedded(config.dataFolder)
  return { url: serviceUrl, ownerUrl: url, close }
}

/** Runs `work` with the owner's connection to a database that is opened, and closed, for it. */
export async function asOwner<Result>(
  config: Config,
  work: (sql: Sql, database: Database) => Promise<Result>,
  options: Pick<ClientOptions, 'hasSqlNames' | 'isReadOnly'> = {},
): Promise<Result> {
  const database = await openDatabase(config)
  const sql = connect(database.ownerUrl, { max: 1, clock: config.clock, ...options })
  try {
    return await blaming(ownerVariable(config), () => work(sql, database))
  } finally {
    await sql.end()
    await database.close()
  }
}

/** The setting that has the owner's address. */
export function ownerVariable({ migrateDatabaseUrl }: Config): string {
  return migrateDatabaseUrl ? 'MIGRATE_DATABASE_URL' : 'DATABASE_URL'
}

export async function secretsOf({ secretKeys, dataFolder }: Config) {
  return createSecrets(secretKeys ?? [await secretKey(dataFolder)])
}
