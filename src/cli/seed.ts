import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { SetupError } from '../errors.ts'
import { withCommands } from './commands.ts'
import { asOwner, type Database, prepareEmbedded } from './database.ts'
import { DEMO_OWNER, firstSteps, seed } from './demo.ts'
import { fillMonth } from './demo-month/index.ts'
import { USAGE } from './usage.ts'

/**
 * Creates the demo organisation if it is missing, and prints its keys and a first request. With --demo, fills it with
 * a month of messages.
 */
export async function runSeed(config: Config, args: string[]): Promise<void> {
  const [flag, ...rest] = args
  if ((flag !== undefined && flag !== '--demo') || rest.length > 0) throw new SetupError(USAGE)
  if (flag === '--demo') checkIsTrial(config)
  const work = async (sql: Sql, database: Database) => {
    const demo = config.isEmbedded
      ? (await prepareEmbedded(config, sql, database)).demo
      : await seed(sql)
    if (flag === '--demo') {
      const { messages } = await fillMonth(sql, demo.organisation)
      const text = `The demo organisation has ${messages} messages of the last month.\nSign in: npm run login -- ${DEMO_OWNER}`
      console.log(withCommands(config.commandPrefix, text))
      return
    }
    console.log(`live key  ${demo.liveKey}\ntest key  ${demo.testKey}\n`)
    const address = config.publicUrl ?? `http://${config.host}:${config.port}`
    console.log(firstSteps(address, demo))
  }
  await asOwner(config, work, { mayCreate: true })
}

/** The month has bounces that count for all organisations, and a domain that the real provider would set up. */
function checkIsTrial({ isEmbedded, email, sms }: Config): void {
  if (isEmbedded && email.provider === 'sandbox' && sms.provider === 'sandbox') return
  throw new SetupError(
    'seed --demo fills only an embedded database whose messages go to the sandbox: run it without DATABASE_URL, EMAIL_PROVIDER and SMS_PROVIDER.',
  )
}
