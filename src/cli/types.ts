import { writeFile } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { generateTypes } from '../db/types.ts'
import { asOwner } from './database.ts'

export async function runTypes(config: Config): Promise<void> {
  await asOwner(config, async (sql, { ownerUrl }) => {
    await migrate(ownerUrl, { clock: config.clock })
    await writeFile(new URL('../db/api.gen.ts', import.meta.url), await generateTypes(sql))
  })
}
