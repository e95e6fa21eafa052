import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { csvLine } from '../text/csv.ts'

/** A column of a file: the value of a row. */
type Columns<Row> = Readonly<Record<string, (row: Row) => string | number | null>>

/** A page of a list, and the cursor of the next one; null on the last page. */
type Page<Row> = { rows: readonly Row[]; nextCursor: string | null }

/**
 * Responds with a list as a CSV file. `fetch` returns the page at a cursor, the first one without; pages are read while
 * the file is sent, so that a file of any length takes little memory. Returns the stream of the file.
 */
export function respondCsv<Row>(
  ctx: Context,
  name: string,
  columns: Columns<Row>,
  fetch: (cursor: { cursor?: string }) => Promise<Page<Row>>,
): Readable {
  const file = Readable.from(linesOf(columns, fetch))
  ctx.attachment(name)
  ctx.set('Content-Type', 'text/csv; charset=utf-8')
  ctx.body = file
  return file
}

async function* linesOf<Row>(
  columns: Columns<Row>,
  fetch: (cursor: { cursor?: string }) => Promise<Page<Row>>,
): AsyncGenerator<string, undefined> {
  yield csvLine(Object.keys(columns))
  const cells = Object.values(columns)
  let page: Page<Row> | undefined
  do {
    page = await fetch(page?.nextCursor ? { cursor: page.nextCursor } : {})
    if (page.rows.length > 0)
      yield page.rows.map((row) => csvLine(cells.map((cell) => cell(row)))).join('')
  } while (page.nextCursor !== null)
}
