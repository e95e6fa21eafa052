import type postgres from 'postgres'
import { codeOf } from './connection-errors.ts'

/** The error code of an address with several hosts of which none takes writes. */
export const STANDBY = 'ESTANDBY'

/** SQLSTATE read_only_sql_transaction. */
const READ_ONLY_TRANSACTION = '25006'

export const READ_ONLY = 'the database is read-only: default_transaction_read_only is on'

/** Returns whether a server is a standby, and whether its transactions are read-only. */
export async function readServerState(
  sql: postgres.Sql,
): Promise<{ isStandby: boolean; isReadOnly: boolean }> {
  const [state] = await sql<{ isStandby: boolean; isReadOnly: boolean }[]>`
    select pg_catalog.pg_is_in_recovery() as "isStandby",
      pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool as "isReadOnly"`
  if (!state) throw new Error('the server returned no row')
  return state
}

/** Says why transactions cannot write; null if they can. */
export async function readOnlyProblem(sql: postgres.Sql): Promise<string | null> {
  const { isStandby, isReadOnly } = await readServerState(sql)
  if (isStandby) return 'the database is a standby, which takes no writes'
  return isReadOnly ? READ_ONLY : null
}

/** Returns whether a write failed because its transaction was read-only. */
export function isReadOnlyError(error: unknown): boolean {
  return codeOf(error) === READ_ONLY_TRANSACTION
}
