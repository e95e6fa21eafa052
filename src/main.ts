import { commandPrefix, withCommands } from './cli/commands.ts'
import { USAGE } from './cli/usage.ts'
import { type Config, readConfig } from './config/index.ts'
import { readLaunch } from './config/launch.ts'
import { SetupError } from './errors.ts'

type Command = (config: Config, args: string[]) => Promise<void>

/** Each command imports only what it needs: migrate starts twice as fast without the API and the providers. */
const commands: Record<string, () => Promise<Command>> = {
  start: async () => (await import('./cli/start.ts')).runStart,
  migrate: async () => (await import('./cli/migrate.ts')).runMigrate,
  seed: async () => (await import('./cli/seed.ts')).runSeed,
  login: async () => (await import('./cli/login.ts')).runLogin,
  sql: async () => (await import('./cli/sql.ts')).runSql,
  doctor: async () => (await import('./cli/doctor/index.ts')).runDoctor,
  join: async () => (await import('./cli/cells/join.ts')).runJoin,
  leave: async () => (await import('./cli/cells/leave.ts')).runLeave,
  types: async () => (await import('./cli/types.ts')).runTypes,
  help: async () => async (config) => console.log(withCommands(config.commandPrefix, USAGE)),
}

const [name = 'help', ...args] = process.argv.slice(2)
const launch = readLaunch(process.env, name)
const prefix = commandPrefix(launch)

async function main() {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!load) throw new SetupError(USAGE)
  const { isRunByNpm } = launch
  const options = { isServing: name === 'start', isRunByNpm, commandPrefix: prefix }
  const config = readConfig(process.env, options)
  const command = await load()
  await command(config, args)
}

await main().catch((error) => {
  // The message of a system error, such as a file that cannot be written, names the file.
  const isPlain = error instanceof SetupError || error.syscall !== undefined
  console.error(isPlain ? withCommands(prefix, error.message) : error)
  process.exitCode = 1
})
