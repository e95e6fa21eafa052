import type { Config } from '../../config/index.ts'
import { SetupError } from '../../errors.ts'
import { VERSION } from '../../telemetry/version.ts'
import { withCommands } from '../commands.ts'
import { asOwner, secretsOf } from '../database.ts'
import { USAGE } from '../usage.ts'
import type { Check } from './check.ts'
import { runChecks } from './checks.ts'

/** Prints a line for each check. Exits with 1 after a problem, with --strict also after a warning. */
export async function runDoctor(config: Config, args: string[]): Promise<void> {
  const isStrict = args[0] === '--strict'
  if (args.length > (isStrict ? 1 : 0)) throw new SetupError(USAGE)
  const checks = await asOwner(config, async (sql) => {
    // Only embedded mode has a key in the data folder.
    const hasKey = config.isEmbedded || config.secretKeys !== null
    return runChecks(sql, config, hasKey ? await secretsOf(config) : null)
  })
  console.log(`Postgram ${VERSION}`)
  for (const check of checks) console.log(withCommands(config.commandPrefix, lineOf(check)))
  const failed = checks.filter(({ ok }) => !ok)
  if (failed.some(({ severity }) => isStrict || severity !== 'warning')) process.exitCode = 1
}

function lineOf({ name, ok, hint, severity = 'problem', note }: Check): string {
  if (!ok) return `${severity.toUpperCase()} ${name}: ${hint}`
  return note ? `ok      ${name}: ${note}` : `ok      ${name}`
}
