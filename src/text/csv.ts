/** A line of CSV and its number. A quoted value may contain line breaks; then it is the number of the first line. */
export type CsvRow = { line: number; values: string[] }

/**
 * Reads CSV (RFC 4180) with lines that end in LF. The separator is a comma; a semicolon or a tab, as spreadsheets
 * write them in some countries, if the first line has no comma. Empty lines are left out. Values have no space around
 * them. A quote that is not closed belongs to the value.
 */
export function readCsv(text: string): CsvRow[] {
  const content = text.replace(/^\uFEFF/, '')
  const [first = ''] = content.split('\n', 1)
  const separator = [',', ';', '\t'].find((one) => first.includes(one)) ?? ','
  const plain = `[^${separator}\\n]*`
  const value = new RegExp(`[ ]*"((?:[^"]|"")*)"[ ]*(?=[${separator}\\n]|$)|(${plain})`, 'y')
  const rows: CsvRow[] = []
  let line = 1
  let row: CsvRow = { line, values: [] }
  for (let place = 0; place <= content.length; place++) {
    value.lastIndex = place
    const [found = '', quoted, unquoted = ''] = value.exec(content) ?? []
    row.values.push((quoted?.replaceAll('""', '"') ?? unquoted).trim())
    line += found.split('\n').length - 1
    place += found.length
    if (content[place] === separator) continue
    line += 1
    if (row.values.some((one) => one !== '')) rows.push(row)
    row = { line, values: [] }
  }
  return rows
}
