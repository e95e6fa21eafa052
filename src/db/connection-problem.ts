import { SERVICE_ROLE } from './client.ts'

const UNREACHABLE =
  /^(ECONN\w+|EPIPE|ENOENT|EACCES|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|CONNECTION_\w+)$/
const UNTRUSTED =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|CERT_|CRL_|INVALID_CA|HOSTNAME_MISMATCH)/
/** Of Postgres: no such database, login refused, too many connections, starting or stopping. */
const REFUSED = /^(3D000|28...|53...|57P..)$/
const DENIED = '42501'
const NO_ROLE = `role "${SERVICE_ROLE}" does not exist`

/**
 * Says in one line why a database cannot be used, with the fix where it is known: what an operator can
 * put right. Null for any other error.
 */
export function connectionProblem(error: unknown): string | null {
  const { code = '', message } = error as { code?: string; message: string }
  if (UNTRUSTED.test(code)) {
    return `TLS to the server failed (${code}): set sslrootcert, or another sslmode, see /docs/deploying#postgres-tls`
  }
  if (/TLS connection/.test(message)) {
    return 'the server offers no TLS: set sslmode=disable where the network is only yours, see /docs/deploying#postgres-tls'
  }
  // Of several addresses of one name that all refuse, there is no message.
  if (UNREACHABLE.test(code)) return `the server cannot be reached: ${message || code}`
  if (message === NO_ROLE) {
    return 'the database has never been migrated: run "npm run migrate" as its owner'
  }
  if (code === DENIED && message.includes(`set role "${SERVICE_ROLE}"`)) {
    return `its login is no member of ${SERVICE_ROLE}: run "grant ${SERVICE_ROLE} to …" as the owner`
  }
  if (code === '3D000') return `${message}: create it, as /docs/deploying#postgres says`
  return REFUSED.test(code) || code === DENIED ? message : null
}
