import type { Sql } from '../client.ts'
import { codeSha256, migrationIds } from './sql-files.ts'

/** How the database stands to this version; older also when it is not one of ours yet. */
export type CodeAge = 'current' | 'newer' | 'older'

/** What to do about an older one. */
export const OLDER_DATABASE =
  'the database is older than this version: run "npm run migrate" with the address of its owner in MIGRATE_DATABASE_URL'

/** Asks the database for the age of its SQL code, as its owner or as the service. */
export async function codeAge(sql: Sql): Promise<CodeAge> {
  const [code] = await sql<{ hasAge: boolean; hasMigrations: boolean }[]>`
    select to_regprocedure('api.code_age(text)') is not null as has_age,
      to_regprocedure('api.applied_migrations()') is not null as has_migrations`
  // Whatever lacks the function is older than the version that brought it.
  if (!code?.hasAge) return 'older'
  const [row] = await sql<{ age: CodeAge }[]>`select api.code_age(${await codeSha256()}) as age`
  if (row?.age !== 'older' || !code.hasMigrations) return row?.age ?? 'older'
  // The database does not know this version: it may have begun with a newer one.
  const applied = await sql<{ id: string }[]>`select m as id from api.applied_migrations() m`
  const known = await migrationIds()
  return applied.every(({ id }) => known.has(id)) ? 'older' : 'newer'
}
