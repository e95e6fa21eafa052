import type { Sql } from './client.ts'
import { codeSha256 } from './sql-files.ts'

/** How the database stands to this version; older also when it is not one of ours yet. */
export type CodeAge = 'current' | 'newer' | 'older'

/** Asks the database for the age of its SQL code, as its owner or as the service. */
export async function codeAge(sql: Sql): Promise<CodeAge> {
  const [code] = await sql<{ hasAge: boolean }[]>`
    select to_regprocedure('api.code_age(text)') is not null as has_age`
  // Whatever lacks the function is older than the version that brought it.
  if (!code?.hasAge) return 'older'
  const [row] = await sql<{ age: CodeAge }[]>`select api.code_age(${await codeSha256()}) as age`
  return row?.age ?? 'older'
}
