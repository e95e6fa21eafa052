import { domainToASCII } from 'node:url'
import * as v from 'valibot'
import { parseBareAddress } from './address.ts'
import { atMost, checkedBy, text } from './fields.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50
const MAX_EMAIL_LENGTH = 254
const MAX_NOTE_LENGTH = 2000

const NOT_ASCII = /\P{ASCII}/u
const CURSOR = /^cur_[0-7][0-9a-hjkmnp-tv-z]{25}$/

const bareAddress = checkedBy(v.string(), (value, report): string | undefined => {
  if (typeof value !== 'string') {
    report('must be a string')
    return
  }
  const parsed = parseBareAddress(value)
  if (!('problem' in parsed)) return parsed.address.toLowerCase()
  report(parsed.problem)
})

/** The body of POST /v1/suppressions; the output address is in lower case. */
export const suppressionSchema = v.strictObject({
  email: bareAddress,
  reason: v.nullish(
    v.picklist(['manual', 'unsubscribe'], 'must be manual or unsubscribe'),
    'manual',
  ),
  note: v.nullish(v.pipe(text(), atMost(MAX_NOTE_LENGTH)), ''),
})

/** A query parameter; a repeated one is an array, which is refused. */
const parameter = v.string('must be given once')

const pageSize = checkedBy(
  v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE)),
  (value, report): number | undefined => {
    const size = /^[0-9]{1,3}$/.test(String(value)) ? Number(value) : 0
    if (size >= 1 && size <= MAX_PAGE) return size
    report(`must be a number from 1 to ${MAX_PAGE}`)
  },
)

/** The query of GET /v1/suppressions. */
export const suppressionsQuery = v.strictObject({
  email: v.exactOptional(
    v.pipe(
      parameter,
      atMost(MAX_EMAIL_LENGTH),
      v.check((value) => !value.includes('\0'), 'must not contain NUL characters'),
    ),
  ),
  limit: v.exactOptional(pageSize, DEFAULT_PAGE),
  cursor: v.exactOptional(
    v.pipe(parameter, v.regex(CURSOR, 'must be the nextCursor of an earlier page')),
  ),
})

/** Converts a search text to the form of stored addresses: the labels of its domain in ASCII. */
export function asStored(text: string): string {
  const domain = text.lastIndexOf('@') + 1
  const labels = text.slice(domain).split('.')
  const stored = labels.map((label) => (NOT_ASCII.test(label) && domainToASCII(label)) || label)
  return text.slice(0, domain) + stored.join('.')
}
