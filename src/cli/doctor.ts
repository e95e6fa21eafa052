import type { Config } from '../config.ts'
import { examine } from '../doctor.ts'
import { asOwner, secretsOf } from './database.ts'

export async function runDoctor(config: Config): Promise<void> {
  // Of a database elsewhere there is no key but the one that is set.
  const hasKey = config.databaseUrl === null || config.secretKeys !== null
  const secrets = hasKey ? await secretsOf(config) : null
  const checks = await asOwner(config, (sql) => examine(sql, config, secrets))
  for (const { what, isWell, cure } of checks) {
    console.log(isWell ? `ok    ${what}` : `WRONG ${what}: ${cure}`)
  }
  if (checks.some(({ isWell }) => !isWell)) process.exitCode = 1
}
