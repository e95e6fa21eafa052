import { commandPrefix, withCommands } from './cli/commands.ts'
import { runDoctor } from './cli/doctor.ts'
import { runMigrate } from './cli/migrate.ts'
import { runSeed } from './cli/seed.ts'
import { runSql } from './cli/sql.ts'
import { runStart } from './cli/start.ts'
import { runTypes } from './cli/types.ts'
import { USAGE, UsageError } from './cli/usage.ts'
import { type Config, readConfig } from './config.ts'
import { SetupError } from './setup-error.ts'

const commands: Record<string, (config: Config, args: string[]) => Promise<void>> = {
  start: runStart,
  migrate: runMigrate,
  seed: runSeed,
  sql: runSql,
  doctor: runDoctor,
  types: runTypes,
  help: async ({ commandPrefix }) => console.log(withCommands(commandPrefix, USAGE)),
}

const prefix = commandPrefix(process.env)

async function main([name = 'help', ...args]: string[]) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(USAGE)
  const options = { isServing: name === 'start', commandPrefix: prefix }
  await command(readConfig(process.env, options), args)
}

await main(process.argv.slice(2)).catch((error) => {
  console.error(error instanceof SetupError ? withCommands(prefix, error.message) : error)
  process.exitCode = 1
})
