import type { Sql } from '../client.ts'
import { codeSha256, migrationIds } from './sql-files.ts'

/** How the database compares with this version; older also when it has no schema of ours yet. */
export type CodeAge = 'current' | 'newer' | 'older'

/** What to do about an older one. */
export const OLDER_DATABASE =
  'the database is older than this version: run "npm run migrate" with the address of its owner in MIGRATE_DATABASE_URL'

/** Asks the database for the age of its SQL code, as its owner or as the service. */
export async function codeAge(sql: Sql): Promise<CodeAge> {
  const [code] = await sql<{ isOurs: boolean }[]>`
    select to_regprocedure('api.code_age(text)') is not null as is_ours`
  if (!code?.isOurs) return 'older'
  const [row] = await sql<{ age: CodeAge }[]>`select api.code_age(${await codeSha256()}) as age`
  if (row && row.age !== 'older') return row.age
  // The database does not know this version: it may have been created by a newer one.
  const rows = await sql<{ id: string }[]>`select m as id from api.applied_migrations() m`
  const known = migrationIds()
  return rows.every(({ id }) => known.has(id)) ? 'older' : 'newer'
}
