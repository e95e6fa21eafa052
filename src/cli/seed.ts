import type { Config } from '../config.ts'
import { demoOf, firstSteps, seed } from '../seed.ts'
import { withDatabase } from './database.ts'

export async function runSeed(config: Config): Promise<void> {
  await withDatabase(config, async (sql) => {
    const demo = config.databaseUrl ? await seed(sql) : await demoOf(sql, config.dataFolder)
    console.log(`live key  ${demo.liveKey}\ntest key  ${demo.testKey}\n`)
    const address = config.publicUrl ?? `http://${config.host}:${config.port}`
    console.log(firstSteps(address, demo))
  })
}
