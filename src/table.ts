/** Rows as a plain table, columns as wide as their widest value. */
export function formatTable(rows: readonly Record<string, unknown>[], columns: string[]): string {
  const cells = rows.map((row) => columns.map((column) => cell(row[column])))
  const widths = columns.map((column, place) =>
    Math.max(column.length, ...cells.map((line) => line[place]?.length ?? 0)),
  )
  const line = (values: string[]) =>
    values
      .map((value, place) => value.padEnd(widths[place] ?? 0))
      .join(' | ')
      .trimEnd()
  return [
    line(columns),
    widths.map((width) => '-'.repeat(width)).join('-+-'),
    ...cells.map(line),
    `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`,
  ].join('\n')
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.replaceAll('\n', '\\n')
}
