import type { Config } from '../config.ts'
import { demoOf, firstSteps, seed } from '../seed.ts'
import { asOwner } from './database.ts'

export async function runSeed(config: Config): Promise<void> {
  await asOwner(config, async (sql) => {
    const isEmbedded = config.databaseUrl === null && config.migrateDatabaseUrl === null
    const demo = isEmbedded ? (await demoOf(sql, config.dataFolder)).demo : await seed(sql)
    console.log(`live key  ${demo.liveKey}\ntest key  ${demo.testKey}\n`)
    const address = config.publicUrl ?? `http://${config.host}:${config.port}`
    console.log(firstSteps(address, demo))
  })
}
