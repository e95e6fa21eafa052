/** Rows as a plain table, columns as wide as their widest line; as in psql, a + marks a cell that goes on below. */
export function formatTable(rows: readonly Record<string, unknown>[], columns: string[]): string {
  const cells = rows.map((row) => columns.map((column) => cell(row[column]).split('\n')))
  const widths = columns.map((column, place) =>
    Math.max(
      column.length,
      ...cells.flatMap((row) => row[place]?.map(({ length }) => length) ?? []),
    ),
  )
  return [
    ...print(
      columns.map((column) => [column]),
      widths,
    ),
    widths.map((width) => '-'.repeat(width)).join('-+-'),
    ...cells.flatMap((row) => print(row, widths)),
    `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`,
  ].join('\n')
}

function print(row: string[][], widths: number[]): string[] {
  const height = Math.max(1, ...row.map(({ length }) => length))
  return Array.from({ length: height }, (_, at) =>
    row
      .map((lines, place) => {
        const mark = at < lines.length - 1 ? '+' : ' '
        return (lines[at] ?? '').padEnd(widths[place] ?? 0) + mark
      })
      .join('| ')
      .trimEnd(),
  )
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
