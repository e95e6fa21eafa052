import type { Config } from '../config/index.ts'
import type { Sql } from '../db/client.ts'
import { connectionProblem, isDenied } from '../db/connection-problem.ts'
import { isReadOnlyError } from '../db/read-only.ts'
import { SetupError } from '../errors.ts'
import { asOwner } from './database.ts'
import { formatTable, printableLines } from './table.ts'

/** Runs a query as the owner and prints its rows. Without --write the transaction is read-only. */
export async function runSql(config: Config, args: string[]): Promise<void> {
  const isReadOnly = args[0] !== '--write'
  const [statement, ...rest] = isReadOnly ? args : args.slice(1)
  if (!statement || rest.length > 0)
    throw new SetupError('usage: npm run sql -- [--write] "select …"')
  const query = async (sql: Sql) => {
    const result = await sql.unsafe(statement).catch((error) => {
      // If the query is wrong, and not the database, the server's message is printed.
      const isOfQuery = isDenied(error) || isReadOnlyError(error)
      if (!error.code || (connectionProblem(error) !== null && !isOfQuery)) throw error
      const needsWrite = isReadOnlyError(error) && isReadOnly
      const hint = needsWrite ? 'to write, run npm run sql -- --write "…"' : error.hint
      const text = hint ? `${error.message}\nhint: ${hint}` : error.message
      // The server quotes values in its errors, which may hold control characters.
      throw new SetupError(printableLines(text).join('\n'))
    })
    // Several statements have several results.
    const results = Array.isArray(result[0]) ? (result as unknown as (typeof result)[]) : [result]
    for (const rows of results) {
      const columns = rows.columns?.map((column) => column.name) ?? []
      console.log(columns.length > 0 ? formatTable(rows, columns) : (rows.command ?? ''))
    }
  }
  await asOwner(config, query, { hasSqlNames: true, isReadOnly })
}
