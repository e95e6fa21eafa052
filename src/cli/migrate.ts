import type { Config } from '../config/index.ts'
import { readAddress } from '../db/address.ts'
import { ensureLogin } from '../db/login.ts'
import { migrate } from '../db/migrate/index.ts'
import { SetupError } from '../errors.ts'
import { asOwner } from './database.ts'
import { namingSetting } from './explain.ts'
import { stopSignal } from './stop-signal.ts'
import { USAGE } from './usage.ts'

/**
 * Brings the database to this version, and creates the service's login unless the owner's login is used.
 * `--breaking` allows migrations after which running processes fail. Throws SetupError.
 */
export async function runMigrate(config: Config, args: string[]): Promise<void> {
  const isBreaking = args.length === 1 && args[0] === '--breaking'
  if (args.length > 0 && !isBreaking) throw new SetupError(USAGE)
  const signal = stopSignal()
  await asOwner(config, async (sql, { url, ownerUrl }) => {
    await migrate(ownerUrl, { clock: config.clock, isBreaking, signal })
    if (readAddress(url).user !== readAddress(ownerUrl).user) {
      await namingSetting('DATABASE_URL', () => ensureLogin(sql, url))
    }
  })
}
