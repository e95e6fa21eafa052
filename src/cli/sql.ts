import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { connectionProblem, isDenied } from '../db/connection-problem.ts'
import { isReadOnlyError } from '../db/read-only.ts'
import { SetupError } from '../errors.ts'
import { asOwner } from './database.ts'
import { formatTable, printableLines } from './table.ts'
import { UsageError } from './usage.ts'

/** Asks as the owner; without --write nothing can be changed by accident. */
export async function runSql(config: Config, args: string[]): Promise<void> {
  const isReadOnly = args[0] !== '--write'
  const [text, ...rest] = isReadOnly ? args : args.slice(1)
  if (!text || rest.length > 0) throw new UsageError('usage: npm run sql -- [--write] "select …"')
  const ask = async (sql: Sql) => {
    const answer = await sql.unsafe(text).catch((error) => {
      // The query may be at fault, not the database: then the server's words say how.
      const isOfQuery = isDenied(error) || isReadOnlyError(error)
      if (!error.code || (connectionProblem(error) !== null && !isOfQuery)) throw error
      const needsWrite = isReadOnlyError(error) && isReadOnly
      const hint = needsWrite ? 'to change something: npm run sql -- --write "…"' : error.hint
      const words = hint ? `${error.message}\nhint: ${hint}` : error.message
      // The server quotes values in its errors.
      throw new SetupError(printableLines(words).join('\n'))
    })
    // Several statements have several answers.
    const results = Array.isArray(answer[0]) ? (answer as unknown as (typeof answer)[]) : [answer]
    for (const rows of results) {
      const columns = rows.columns?.map((column) => column.name) ?? []
      console.log(columns.length > 0 ? formatTable(rows, columns) : (rows.command ?? ''))
    }
  }
  await asOwner(config, ask, { hasSqlNames: true, isReadOnly })
}
