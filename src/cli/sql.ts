import type { Config } from '../config.ts'
import type { Sql } from '../db/client.ts'
import { formatTable } from '../table.ts'
import { withDatabase } from './database.ts'
import { MENDABLE, UsageError } from './usage.ts'

export async function runSql(config: Config, [text, ...rest]: string[]): Promise<void> {
  if (!text || rest.length > 0) throw new UsageError('usage: npm run sql -- "select …"')
  const ask = async (sql: Sql) => {
    const answer = await sql.unsafe(text).catch((error) => {
      if (MENDABLE.test(error.code)) throw error
      throw new UsageError(error.hint ? `${error.message}\nhint: ${error.hint}` : error.message)
    })
    // Several statements have several answers.
    const results = Array.isArray(answer[0]) ? (answer as unknown as (typeof answer)[]) : [answer]
    for (const rows of results) {
      const columns = rows.columns?.map((column) => column.name) ?? []
      console.log(columns.length > 0 ? formatTable(rows, columns) : (rows.command ?? ''))
    }
  }
  await withDatabase(config, ask, { hasSqlNames: true })
}
