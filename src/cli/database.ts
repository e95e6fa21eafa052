import type { Config } from '../config.ts'
import { connect, type Sql } from '../db/client.ts'
import { openEmbedded } from '../db/embedded.ts'
import { secretKey } from '../db/kept-file.ts'
import { createSecrets } from '../secrets.ts'

export type Database = { url: string; close(): Promise<void> }

export async function openDatabase(config: Config): Promise<Database> {
  if (config.databaseUrl) return { url: config.databaseUrl, close: async () => undefined }
  return openEmbedded(config.dataFolder)
}

/** Runs `work` with the owner's connection to a database that is opened, and closed, for it. */
export async function withDatabase<Result>(
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

export async function secretsOf({ secretKeys, dataFolder }: Config) {
  return createSecrets(secretKeys ?? [await secretKey(dataFolder)])
}
