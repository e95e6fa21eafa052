import { SERVICE_ROLE } from './client.ts'
import { codeOf, LOST_BY_PG } from './connection-errors.ts'
import { isReadOnlyError, STANDBY } from './read-only.ts'
import { avoidPooler, isPoolerError, TOO_OLD, UnsuitableServer } from './server.ts'

const UNREACHABLE =
  /^(ECONN\w+|EPIPE|ENOENT|EACCES|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOHOST|EPROTO|CONNECT_TIMEOUT|NO_RESPONSE|CONNECTION_\w+)$/
const UNTRUSTED =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|CERT_|CRL_|INVALID_CA|HOSTNAME_MISMATCH)/
/**
 * SQLSTATE classes of Postgres: connection failed, login refused, resources exhausted, ended by an administrator or
 * a time limit, starting or stopping.
 */
const REFUSED = /^(08...|28...|53...|57...)$/
const DENIED = '42501'
const NO_DATABASE = '3D000'
const UNKNOWN_SETTING = '42704'
const WRONG_SETTING = /^22/
const NO_ROLE = `role "${SERVICE_ROLE}" does not exist`
const NO_EXTENSION = /extension "\w+" is not available|extension control file/
const USE_PRIMARY =
  'set the address of the primary, or of all hosts, see /docs/deployment#database-failover'

/** Says in one line why a database cannot be used, with the fix if it is known. Null if an operator cannot fix it. */
export function connectionProblem(error: unknown): string | null {
  const { message } = error as Error
  const code = codeOf(error)
  if (UNTRUSTED.test(code)) {
    return `TLS to the server failed (${code}): set sslrootcert, or another sslmode, see /docs/deployment#tls-to-postgres`
  }
  if (/TLS connection/.test(message)) {
    return 'the server offers no TLS: set sslmode=disable if the network is private, see /docs/deployment#tls-to-postgres'
  }
  if (error instanceof UnsuitableServer) return message
  if (isPoolerError(message)) return avoidPooler(message)
  // There is no message if a name has several addresses and all refuse.
  if (UNREACHABLE.test(code) || LOST_BY_PG.test(message)) {
    return `the server cannot be reached: ${message || code}`
  }
  if (code === STANDBY) return `${message}: ${USE_PRIMARY}`
  if (isReadOnlyError(error)) return `the server takes no writes (${message}): ${USE_PRIMARY}`
  if (message === NO_ROLE) {
    return 'the database has never been migrated: run "npm run migrate" as its owner'
  }
  if (isDenied(error) && message.includes(`set role "${SERVICE_ROLE}"`)) {
    return `its login is not a member of ${SERVICE_ROLE}: run "grant ${SERVICE_ROLE} to …" as the owner`
  }
  if (NO_EXTENSION.test(message)) {
    return `${message}: install Postgres's contrib package on the server`
  }
  if (code === NO_DATABASE) return `${message}: create it, see /docs/deployment#postgres`
  if (code === UNKNOWN_SETTING && /configuration parameter/.test(message)) {
    // Every connection sets these; servers before Postgres 12 do not know them.
    if (/"(plan_cache_mode|jit)"/.test(message)) return TOO_OLD
    return `${message}: remove it from the address`
  }
  if (WRONG_SETTING.test(code) && /parameter "/.test(message)) {
    return `${message}: correct it in the address`
  }
  return REFUSED.test(code) || isDenied(error) ? message : null
}

/** Returns whether the login or its role lacks a right. */
export function isDenied(error: unknown): boolean {
  return codeOf(error) === DENIED
}
