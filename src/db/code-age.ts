import type { Sql } from './client.ts'
import { codeSha256 } from './sql-files.ts'

/** missing: the database is not one of ours yet. */
export type CodeAge = 'missing' | 'older' | 'ours' | 'newer'

/** How the SQL code in the database stands to that of this version. */
export async function codeAge(sql: Sql): Promise<CodeAge> {
  // A database from before there was a list of former versions is older than any that is on it.
  const [tables] = await sql<{ code: boolean; former: boolean }[]>`
    select to_regclass('app.code') is not null as code, to_regclass('app.former_code') is not null as former`
  if (!tables?.code) return 'missing'
  const ours = await codeSha256()
  const [inPlace] = await sql<{ sha256: string }[]>`select c.sha256 from app.code c`
  if (inPlace?.sha256 === ours) return 'ours'
  const former = tables.former
    ? await sql`select from app.former_code f where f.sha256 = ${ours}`
    : []
  return former.length > 0 ? 'newer' : 'older'
}
