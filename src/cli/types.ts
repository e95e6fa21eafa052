import { writeFile } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { generateTypes } from '../db/types.ts'
import { withDatabase } from './database.ts'

export async function runTypes(config: Config): Promise<void> {
  await withDatabase(config, async (sql, url) => {
    await migrate(url, { clock: config.clock })
    await writeFile(new URL('../db/api.gen.ts', import.meta.url), await generateTypes(sql))
  })
}
