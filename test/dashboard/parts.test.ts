import t from 'tap'
import { PAGE_ROWS, pageOf } from '../../src/dashboard/parts.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

t.test('core.page_rows: is the number of rows that pages show', async (t) => {
  t.same([...(await sql`select core.page_rows() as rows`)], [{ rows: PAGE_ROWS }])
})

t.test('pageOf: shows all rows of a last page, and leaves out the row of the next page', (t) => {
  const rows = Array.from({ length: PAGE_ROWS + 1 }, (_, n) => n)
  const all = rows.slice(0, PAGE_ROWS)
  t.same(pageOf([]), { page: [], last: null })
  t.same(pageOf(all), { page: all, last: null })
  t.same(pageOf(rows), { page: all, last: PAGE_ROWS - 1 })
  t.end()
})
