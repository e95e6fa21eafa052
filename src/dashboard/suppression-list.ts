import { parseBody } from '../schemas/fields.ts'
import { suppressionSchema } from '../schemas/suppression.ts'
import { type CsvRow, readCsv } from '../text/csv.ts'

export type ListEntry = { email: string; note: string }

/** A line that is not imported: its number, its beginning and why. */
export type BadLine = { line: number; text: string; problem: string }

const MAX_SHOWN_LENGTH = 100

/** Returns the number of lines of a list. */
export function linesOf(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/** Where a list has addresses and notes; absent: it has one column without a name. */
type Columns = { email: number; note: number }

/**
 * Reads a list of addresses: one on each line, or CSV whose first line names the columns, of which `email` and
 * `note` are read.
 */
export function* readList(text: string): Generator<ListEntry | BadLine> {
  let columns: Columns | undefined
  let isFirst = true
  for (const row of readCsv(text)) {
    const names = isFirst ? row.values.map((value) => value.toLowerCase()) : []
    isFirst = false
    if (names.includes('email')) {
      columns = { email: names.indexOf('email'), note: names.indexOf('note') }
    } else {
      yield entryOf(row, columns)
    }
  }
}

function entryOf({ line, values }: CsvRow, columns?: Columns): ListEntry | BadLine {
  const bad = (problem: string) => ({ line, text: beginningOf(values.join(',')), problem })
  if (!columns && values.length > 1) {
    return bad(`has ${values.length} columns; the first line must then be email,note`)
  }
  const { email, note } = columns ?? { email: 0, note: -1 }
  const entry = { email: values[email] ?? '', note: values[note] ?? '' }
  const parsed = parseBody(suppressionSchema, entry)
  if ('value' in parsed) return { ...entry, email: parsed.value.email }
  const problems = Object.entries(parsed.fields).flatMap(([name, ofField]) =>
    ofField.map((problem) => `${name} ${problem}`),
  )
  return bad(problems.join('; '))
}

function beginningOf(text: string): string {
  if (text.length <= MAX_SHOWN_LENGTH) return text
  return `${text.slice(0, MAX_SHOWN_LENGTH - 1).toWellFormed()}…`
}
