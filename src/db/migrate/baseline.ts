import { SetupError } from '../../errors.ts'
import type { Sql } from '../client.ts'

/** The first migration. Databases from before the first release have others. */
const BASELINE = '0001_types'

/** Whether these applied migrations are those of a version from before the first release. */
export function isBeforeBaseline(applied: readonly string[]): boolean {
  return applied.length > 0 && !applied.includes(BASELINE)
}

/** Throws when the database was created by a version from before the first release. */
export async function refuseBeforeBaseline(sql: Sql): Promise<void> {
  const [table] = await sql<{ exists: boolean }[]>`
    select to_regclass('app.migrations') is not null as exists`
  if (!table?.exists) return
  const rows = await sql<{ id: string }[]>`select m.id from app.migrations m`
  if (isBeforeBaseline(rows.map(({ id }) => id))) {
    throw new SetupError(
      'the database was created by a version from before the first release, which cannot be upgraded: use a new database',
    )
  }
}
