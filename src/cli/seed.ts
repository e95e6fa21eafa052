import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { asOwner, type Database, prepareEmbedded } from './database.ts'
import { firstSteps, seed } from './demo.ts'

/** Creates the demo organisation if it is missing, and prints its keys and a first request. */
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
