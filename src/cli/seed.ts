import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { asOwner, type Database, prepareEmbedded } from './database.ts'
import { firstSteps, seed } from './demo.ts'

/** Prints the keys of the demo organisation, which it makes where it is missing, and a first request. */
export async function runSeed(config: Config): Promise<void> {
  const work = async (sql: Sql, database: Database) => {
    const demo = config.isEmbedded
      ? (await prepareEmbedded(config, sql, database)).demo
      : await seed(sql)
    console.log(`live key  ${demo.liveKey}\ntest key  ${demo.testKey}\n`)
    const address = config.publicUrl ?? `http://${config.host}:${config.port}`
    console.log(firstSteps(address, demo))
  }
  await asOwner(config, work, { mayCreate: true })
}
