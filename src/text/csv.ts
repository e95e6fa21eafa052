/**
 * Spreadsheets run a text that begins with one of these as a formula. A ' before it counts as well, so that a text is
 * read back as it was.
 */
const FORMULA = /^'*[=+\-@\t\r]/
const WRITTEN_FORMULA = /^'(?='*[=+\-@\t\r])/

/**
 * Returns a line of CSV (RFC 4180) with its line break. A text that a spreadsheet would run as a formula gets a ' in
 * front.
 */
export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(cellOf).join(',')}\r\n`
}

function cellOf(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Returns the number of lines of a text, in less time than reading it as CSV takes. */
export function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/** A line of CSV and its number. A quoted value may contain line breaks; then it is the number of the first line. */
export type CsvRow = { line: number; values: string[] }

/**
 * Reads CSV (RFC 4180) with lines that end in LF. The separator is a comma; a semicolon or a tab, as spreadsheets
 * write them in some countries, if the first line has no comma. Empty lines are left out. Values have no space around
 * them and no ' of csvLine before them. A quote that is not closed belongs to the value. Rows are read one after
 * another, so that a long text need not be read at once.
 */
export function* readCsv(text: string): Generator<CsvRow> {
  const content = text.replace(/^\uFEFF/, '')
  const [first = ''] = content.split('\n', 1)
  const separator = [',', ';', '\t'].find((one) => first.includes(one)) ?? ','
  const plain = `[^${separator}\\n]*`
  const value = new RegExp(`[ ]*"((?:[^"]|"")*)"[ ]*(?=[${separator}\\n]|$)|(${plain})`, 'y')
  let line = 1
  let row: CsvRow = { line, values: [] }
  for (let place = 0; place <= content.length; place++) {
    value.lastIndex = place
    const [found = '', quoted, unquoted = ''] = value.exec(content) ?? []
    const written = quoted?.replaceAll('""', '"') ?? unquoted
    row.values.push(written.replace(WRITTEN_FORMULA, '').trim())
    line += found.split('\n').length - 1
    place += found.length
    if (content[place] === separator) continue
    line += 1
    if (row.values.some((one) => one !== '')) yield row
    row = { line, values: [] }
  }
}
