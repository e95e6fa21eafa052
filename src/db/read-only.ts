import type { Sql } from './client.ts'

/** Says why transactions may not write; null where they may. */
export async function readOnlyProblem(sql: Sql): Promise<string | null> {
  const [row] = await sql<{ isStandby: boolean; isReadOnly: boolean }[]>`
    select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only`
  if (row?.isStandby) return 'the database is a standby, which takes no writes'
  return row?.isReadOnly ? READ_ONLY : null
}

export const READ_ONLY = 'the database is read-only: default_transaction_read_only is on'

/** Whether a write failed for that reason. */
export function isReadOnlyError(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '25006'
}
