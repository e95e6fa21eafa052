import * as v from 'valibot'
import { Refusal } from '../../errors.ts'
import { smsSchema } from '../../schemas/sms.ts'
import { countLines, readCsv } from '../../text/csv.ts'
import { type Form, parseForm } from '../form.ts'
import { count } from '../parts.ts'

const MAX_LINES = 100_000

const MAX_SOURCE_LENGTH = 1000

const importSchema = v.strictObject({
  lines: v.string(),
  file: v.string(),
  source: v.pipe(
    v.string(),
    v.maxLength(MAX_SOURCE_LENGTH, `must be at most ${MAX_SOURCE_LENGTH} characters`),
  ),
  endsOptOuts: v.optional(v.literal('yes', 'must be yes or absent')),
})

/** A line that is not recorded: its number, its text and why. */
type BadLine = { line: number; text: string; reason: string }

export type ConsentList = {
  consents: { line: number; phone: string; source: string }[]
  bad: BadLine[]
  endsOptOuts: boolean
}

/** Returns the pasted or uploaded list of a form. Throws a Refusal if there is none or if it is too long. */
export function consentListOf(form: Form): ConsentList {
  const given = parseForm(importSchema, new Map([['lines', ['']], ['file', ['']], ...form]))
  const text = [given.lines, given.file].filter(Boolean).join('\n')
  // Eight million empty lines would take the event loop a second. One line more can be a heading.
  refuseOver(MAX_LINES + 1, countLines(text))
  const rows = [...readCsv(text)]
  const [first] = rows
  // A heading has no number.
  if (first && !/\d/.test(first.values[0] ?? '')) rows.shift()
  if (rows.length === 0) {
    throw new Refusal('validation_error', { lines: ['paste lines here, or choose a file'] })
  }
  refuseOver(MAX_LINES, rows.length)
  const lines = new Map<string, number>()
  const consents: ConsentList['consents'] = []
  const bad: BadLine[] = []
  for (const { line, values } of rows) {
    const [phone = '', own = ''] = values
    const source = own || given.source
    const reason =
      problemOf(phone, source, values.length) ??
      (lines.has(phone) ? `repeats the number of line ${lines.get(phone)}` : null)
    if (reason) {
      bad.push({ line, text: values.join(', '), reason })
    } else {
      lines.set(phone, line)
      consents.push({ line, phone, source })
    }
  }
  return { consents, bad, endsOptOuts: given.endsOptOuts === 'yes' }
}

function refuseOver(maxLines: number, lines: number): void {
  if (lines <= maxLines) return
  const problem = `at most ${count(MAX_LINES)} lines at a time; the list has ${count(lines)}`
  throw new Refusal('validation_error', { lines: [problem] })
}

function problemOf(phone: string, source: string, values: number): string | null {
  if (!v.is(smsSchema.entries.to, phone)) return 'is not a number in E.164, such as +27821234567'
  if (values > 2) return 'has more than two values; put a source with commas into quotation marks'
  if (source === '') return 'has no source'
  if (source.length > MAX_SOURCE_LENGTH)
    return `has a source longer than ${MAX_SOURCE_LENGTH} characters`
  return null
}
