import * as v from 'valibot'
import { Refusal } from '../../errors.ts'
import { parseBody } from '../../schemas/fields.ts'
import { suppressionSchema } from '../../schemas/suppression.ts'
import { type CsvRow, countLines, readCsv } from '../../text/csv.ts'
import { type Form, parseForm, textOf } from '../form.ts'
import { count, shortened } from '../parts.ts'

/** The most lines of a list. */
export const MAX_LINES = 100_000

/** Addresses stored by one call: the organisation's sends wait while it runs. */
const SLICE = 1000

const importSchema = v.object({ listReason: v.picklist(['manual', 'unsubscribe']) })

export type ListEntry = { email: string; note: string }

/** A line that is not imported: its number, its beginning and why. */
export type BadLine = { line: number; text: string; problem: string }

/** Returns the list of a form, which is a file or a text. Throws a Refusal for an empty or too long one. */
export function suppressionListOf(form: Form) {
  const { listReason } = parseForm(importSchema, form)
  const text = (textOf(form, 'file') || textOf(form, 'list')).trimEnd()
  const lines = countLines(text)
  const refuse = (problem: string) => {
    throw new Refusal('validation_error', { list: [problem] })
  }
  if (text === '') refuse('paste addresses, or choose a file that has some')
  if (lines > MAX_LINES) {
    refuse(`has ${count(lines)} lines, but at most ${count(MAX_LINES)} are imported at once`)
  }
  return { reason: listReason, list: readList(text) }
}

/** Reads the entries of a list in slices, so that other work is done in between. */
export function* slicesOf(
  list: Iterable<ListEntry | BadLine>,
  onBad: (line: BadLine) => void,
): Generator<ListEntry[], undefined> {
  let slice: ListEntry[] = []
  for (const entry of list) {
    if ('problem' in entry) onBad(entry)
    else slice.push(entry)
    if (slice.length === SLICE) {
      yield slice
      slice = []
    }
  }
  if (slice.length > 0) yield slice
}

/** Where a list has addresses and notes; absent: it has one column without a name. */
type Columns = { email: number; note: number }

/**
 * Reads a list of addresses: one on each line, or CSV whose first line names the columns, of which `email` and
 * `note` are read.
 */
function* readList(text: string): Generator<ListEntry | BadLine> {
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
  const bad = (problem: string) => ({ line, text: shortened(values.join(',')), problem })
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
