/** A value that begins with one of these is a formula to a spreadsheet, also behind space that it trims. */
const FORMULA = /^\s*[=+\-@]|^[\t\r]/

/** Returns a row of a CSV file (RFC 4180). A value that a spreadsheet would calculate gets a ' in front. */
export function csvRow(values: readonly (string | number | null)[]): string {
  return `${values.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Yields the text of a CSV file from its pages, so that a file of any length takes little memory. */
export async function* csvOf<Row>(
  columns: Readonly<Record<string, (row: Row) => string | number | null>>,
  pages: AsyncIterable<readonly Row[]>,
): AsyncGenerator<string, undefined> {
  yield csvRow(Object.keys(columns))
  const cells = Object.values(columns)
  for await (const rows of pages) {
    if (rows.length > 0) yield rows.map((row) => csvRow(cells.map((cell) => cell(row)))).join('')
  }
}
