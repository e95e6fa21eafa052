import { runDoctor } from './cli/doctor.ts'
import { runMigrate } from './cli/migrate.ts'
import { runSeed } from './cli/seed.ts'
import { runSql } from './cli/sql.ts'
import { runStart } from './cli/start.ts'
import { runTypes } from './cli/types.ts'
import { MENDABLE, USAGE, UsageError } from './cli/usage.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { Breaking } from './db/breaking.ts'
import { NotInstalled } from './db/embedded-binaries.ts'
import { Interrupted } from './db/migrate.ts'
import { Outdated } from './db/readiness.ts'

const commands: Record<string, (config: Config, args: string[]) => Promise<void>> = {
  start: runStart,
  migrate: runMigrate,
  seed: runSeed,
  sql: runSql,
  doctor: runDoctor,
  types: runTypes,
  help: async () => console.log(USAGE),
}

async function main([name = 'help', ...args]: string[]) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(USAGE)
  await command(readConfig(process.env, { isServing: name === 'start' }), args)
}

await main(process.argv.slice(2)).catch((error) => {
  const isExpected =
    [UsageError, ConfigError, NotInstalled, Breaking, Interrupted, Outdated].some(
      (kind) => error instanceof kind,
    ) || MENDABLE.test(error.code)
  console.error(isExpected ? error.message || error.code : error)
  process.exitCode = 1
})
