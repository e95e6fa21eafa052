/** Returns rows as a table in plain text, as psql prints it: a + marks a cell that continues on the next line. */
export function formatTable(rows: readonly Record<string, unknown>[], columns: string[]): string {
  const head = columns.map(printableLines)
  const body = rows.map((row) => columns.map((column) => printableLines(textOf(row[column]))))
  const widths = columns.map((_, place) =>
    // Math.max(...) would fail with more than some 100 000 arguments.
    [head, ...body].flatMap((row) => row[place] ?? []).reduce(maxLength, 0),
  )
  return [
    ...print(head, widths),
    widths.map((width) => '-'.repeat(width)).join('-+-'),
    ...body.flatMap((row) => print(row, widths)),
    `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`,
  ].join('\n')
}

/**
 * Returns the lines of a text as psql prints them: tabs as spaces, other control characters as codes. The text may
 * come from anybody, and a terminal executes control characters.
 */
export function printableLines(text: string): string[] {
  return text.split('\n').map((line) =>
    line
      .replace(/[^\P{Cc}\t]/gu, codeOf)
      .split('\t')
      .reduce((before, part) => before.padEnd(nextTabStop(before.length)) + part),
  )
}

const TAB_WIDTH = 8

function nextTabStop(length: number): number {
  return length + TAB_WIDTH - (length % TAB_WIDTH)
}

function codeOf(control: string): string {
  if (control === '\r') return '\\r'
  const code = control.charCodeAt(0)
  const hex = code.toString(16).toUpperCase()
  return code < 0x80 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`
}

const maxLength = (width: number, line: string) => Math.max(width, line.length)

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

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
