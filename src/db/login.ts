/** The logins of a database: their rights, and the creation of the login that the service needs. */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { SetupError } from '../errors.ts'
import { readAddress } from './address.ts'
import { connect, SERVICE_ROLE, type Sql } from './client.ts'
import { codeOf } from './connection-errors.ts'
import { isDenied } from './connection-problem.ts'

export type Login = {
  name: string
  /** Whether migrate can run with it. */
  isOwner: boolean
  /** Rights beyond those of the service's role, as a text; null if there are none. */
  excess: string | null
}

/** Returns the login of a connection. */
export async function currentLogin(sql: Sql): Promise<Login> {
  const [login] = await sql<Login[]>`
    select r.rolname as name, d.is_owner, nullif(concat_ws(', ',
      case when r.rolsuper then 'is a superuser' end, case when r.rolcreaterole then 'may create roles' end,
      case when r.rolbypassrls then 'bypasses row security' end,
      case when d.is_owner then 'may create schemas in the database' end), '') as excess
    from pg_roles r
    cross join lateral (select has_database_privilege(r.oid, current_database(), 'create') as is_owner) d
    where r.rolname = session_user`
  if (!login) throw new Error('the session has no login')
  return login
}

/** The advisory lock of ensureLogin(). */
const LOGIN_LOCK = 5_402_120

const DUPLICATE_ROLE = '42710'
const DUPLICATE_ROW = '23505'
const LOGIN_REFUSED = /^28/

/**
 * Ensures that the login of `url` exists, is a member of the service's role, and has the password of the address.
 * Changes nothing that is right already, so that an administrator may create the login. `owner` is the owner's
 * connection to the same database; throws SetupError if it may not create what is missing.
 */
export async function ensureLogin(owner: Sql, url: string): Promise<void> {
  try {
    await createLogin(owner, url).catch((error) => {
      // Roles belong to the whole server: the migrate of another database may have created it meanwhile.
      if (error.code !== DUPLICATE_ROLE && error.code !== DUPLICATE_ROW) throw error
      return createLogin(owner, url)
    })
  } catch (error) {
    if (!isDenied(error)) throw error
    throw new SetupError(
      `DATABASE_URL: its login is not ready, and the owner may not create it (${(error as Error).message}). ` +
        `As an administrator run: create role ${readAddress(url).user} login password '…' in role ${SERVICE_ROLE}`,
    )
  }
}

async function createLogin(owner: Sql, url: string): Promise<void> {
  const { user, password } = readAddress(url)
  await owner.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOGIN_LOCK})`
    const [login] = await tx<{ isMember: boolean }[]>`
      select pg_has_role(r.oid, ${SERVICE_ROLE}, 'member') as is_member
      from pg_roles r where r.rolname = ${user}`
    const isStale = login && password !== '' && !(await acceptsLogin(url))
    const statements = await tx<{ text: string }[]>`
      select format(s.form, ${user}::text, ${scramVerifier(password)}::text, current_user) as text
      from (values
        (${!login}, 'create role %1$I login'),
        (${!login?.isMember}, ${`grant ${SERVICE_ROLE} to %1$I`}),
        (${password !== '' && (!login || isStale === true)}, 'alter role %1$I password %2$L'),
        -- pg_stat_activity, and with it /metrics, shows the state of a session only to members of its role.
        (${!login}, 'grant %1$I to %3$I')
      ) s (is_needed, form)
      where s.is_needed`
    for (const { text } of statements) await tx.unsafe(text)
  })
}

async function acceptsLogin(url: string): Promise<boolean> {
  const sql = connect(url, { max: 1 })
  try {
    await sql`select`
    return true
  } catch (error) {
    if (LOGIN_REFUSED.test(codeOf(error))) return false
    throw error
  } finally {
    await sql.end()
  }
}

const SCRAM_ITERATIONS = 4096

/** Returns the SCRAM verifier of a password (RFC 5803), so that the password itself is in no log of the server. */
function scramVerifier(password: string): string {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, 32, 'sha256')
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  const serverKey = hmac('Server Key').toString('base64')
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}
