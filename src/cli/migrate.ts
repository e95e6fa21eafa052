import type { Config } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { withDatabase } from './database.ts'
import { stopSignal } from './stop-signal.ts'
import { USAGE, UsageError } from './usage.ts'

export async function runMigrate(config: Config, args: string[]): Promise<void> {
  const isBreaking = args.length === 1 && args[0] === '--breaking'
  if (args.length > 0 && !isBreaking) throw new UsageError(USAGE)
  const signal = stopSignal()
  await withDatabase(config, (_, url) => migrate(url, { clock: config.clock, isBreaking, signal }))
}
