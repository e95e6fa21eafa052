import { domainToASCII } from 'node:url'
import * as v from 'valibot'
import { parseBareAddress } from './address.ts'
import { atMost, checkedBy, text } from './fields.ts'
import { page, parameter } from './page.ts'

const MAX_EMAIL_LENGTH = 254
const MAX_NOTE_LENGTH = 2000

const NOT_ASCII = /\P{ASCII}/u

/** An address without a display name; the output is in lower case. */
export const bareAddress = checkedBy(v.string(), (value, report): string | undefined => {
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

/** The query of GET /v1/suppressions. */
export const suppressionsQuery = v.strictObject({
  email: v.exactOptional(
    v.pipe(
      parameter,
      atMost(MAX_EMAIL_LENGTH),
      v.check((value) => !value.includes('\0'), 'must not contain NUL characters'),
    ),
  ),
  ...page,
})

/** Converts a search text to the form of stored addresses: the labels of its domain in ASCII. */
export function asStored(text: string): string {
  const domain = text.lastIndexOf('@') + 1
  const labels = text.slice(domain).split('.')
  const stored = labels.map((label) => (NOT_ASCII.test(label) && domainToASCII(label)) || label)
  return text.slice(0, domain) + stored.join('.')
}
