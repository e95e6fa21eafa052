import type { Config } from '../config.ts'
import { examine } from '../doctor.ts'
import { withCommands } from './commands.ts'
import { asOwner, secretsOf } from './database.ts'

export async function runDoctor(config: Config): Promise<void> {
  const checks = await asOwner(config, async (sql) => {
    // Of a database elsewhere there is no key but the one that is set.
    const hasKey = config.isEmbedded || config.secretKeys !== null
    return examine(sql, config, hasKey ? await secretsOf(config) : null)
  })
  for (const { what, isWell, cure } of checks) {
    console.log(
      isWell ? `ok    ${what}` : `WRONG ${what}: ${withCommands(config.commandPrefix, cure)}`,
    )
  }
  if (checks.some(({ isWell }) => !isWell)) process.exitCode = 1
}
