import { writeFile } from 'node:fs/promises'
import type { Config } from '../config/index.ts'
import { migrate } from '../db/migrate/index.ts'
import { generateTypes } from '../db/types.ts'
import { asOwner } from './database.ts'

/** Migrates the database and writes src/db/api.gen.ts from its schema api and the enums of its schema app. */
export async function runTypes(config: Config): Promise<void> {
  await asOwner(config, async (sql, { ownerUrl }) => {
    await migrate(ownerUrl, { clock: config.clock })
    await writeFile(new URL('../db/api.gen.ts', import.meta.url), await generateTypes(sql))
  })
}
