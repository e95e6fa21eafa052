import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { SetupError } from '../errors.ts'
import { asOwner } from './database.ts'
import { USAGE } from './usage.ts'

/** Prints a link that signs in to the dashboard, for a user whose mail does not arrive. */
export async function runLogin(config: Config, args: string[]): Promise<void> {
  const [email, ...rest] = args
  if (!email || rest.length > 0) throw new SetupError(USAGE)
  const path = await asOwner(config, (sql) => signInPath(sql, email))
  console.log(`${config.publicUrl ?? `http://${config.host}:${config.port}`}${path}`)
}

/** Returns the path of a new link that signs this user in. `sql` is the owner's. */
export async function signInPath(sql: Sql, email: string): Promise<string> {
  const [row] = await sql<{ path: string }[]>`select ops.create_sign_in_link(${email}) as path`
  return row?.path ?? ''
}
