import * as v from 'valibot'
import type { AcceptEmail } from '../db/api.gen.ts'
import { type Address, formatAddress, parseAddress } from './address.ts'
import {
  checkedBy,
  crossFieldCheck,
  isObject,
  line,
  type Parsed,
  parseBody,
  type Report,
  text,
} from './fields.ts'
import { headers, MAX_HEADERS, UNSUBSCRIBE_HEADER } from './headers.ts'
import { tooMany } from './limits.ts'
import { messageClass, tags } from './message.ts'
import { variables } from './variables.ts'

/**
 * An item of api.accept_emails without its place in the call. `sender`, `to`, `cc`, `bcc` and `reply_to` are header
 * forms; the other addresses are bare.
 */
export type Email = Omit<AcceptEmail, 'call' | 'index' | 'error'>

const MAX_RECIPIENTS = 50
const MAX_SUBJECT_LENGTH = 998
const MAX_HTML_BYTES = 2 * 1024 * 1024
const MAX_TEXT_BYTES = 1024 * 1024
const MAX_TEMPLATE_ID_LENGTH = 64

function checkAddress(value: unknown, report: Report, ...path: number[]): Address | undefined {
  if (typeof value !== 'string') {
    report('must be a string', ...path)
    return
  }
  const parsed = parseAddress(value)
  if (!('problem' in parsed)) return parsed
  report(parsed.problem, ...path)
}

const address = checkedBy(v.string(), checkAddress)

function addresses(min: 0 | 1) {
  const many = v.pipe(v.array(v.string()), v.minLength(min), v.maxLength(MAX_RECIPIENTS))
  return checkedBy(v.union([v.string(), many]), (value, report): Address[] | undefined => {
    if (typeof value === 'string') {
      const one = checkAddress(value, report)
      return one && [one]
    }
    if (!Array.isArray(value)) {
      report('must be a string or an array of strings')
      return
    }
    if (value.length < min) report('must have at least 1 address')
    if (value.length > MAX_RECIPIENTS) report(tooMany(MAX_RECIPIENTS, 'addresses', value.length))
    const found: Address[] = []
    for (let index = 0; index < value.length && index < MAX_RECIPIENTS; index++) {
      const one = checkAddress(value[index], report, index)
      if (one) found.push(one)
    }
    return found
  })
}

function body(maxBytes: number) {
  return v.pipe(
    text(),
    v.minLength(1, 'must not be empty'),
    v.check(
      // A UTF-16 unit takes at most three bytes in UTF-8, so only long texts need counting.
      (value) => value.length * 3 <= maxBytes || Buffer.byteLength(value) <= maxBytes,
      ({ input }) => `must be at most ${maxBytes} bytes but has ${Buffer.byteLength(input)}`,
    ),
  )
}

function checkTogether(email: Record<string, unknown>, report: Report): void {
  const has = (field: string) => (email[field] ?? null) !== null
  const hasBody = has('html') || has('text')
  const hasTemplate = has('templateId')
  if (!hasTemplate && !has('subject')) report('is required', 'subject')
  if (!hasTemplate && !hasBody) report('one of html, text or templateId is required')
  if (hasTemplate && hasBody) report('cannot be combined with html or text', 'templateId')
  if (!hasTemplate && has('variables')) report('requires templateId', 'variables')
  if (email.class !== 'marketing') return
  for (const field of ['cc', 'bcc']) {
    const copies = email[field]
    if ((typeof copies === 'string' || Array.isArray(copies)) && copies.length > 0) {
      report('is not allowed in marketing email', field)
    }
  }
  if (!isObject(email.headers)) return
  for (const name of Object.keys(email.headers).slice(0, MAX_HEADERS)) {
    if (UNSUBSCRIBE_HEADER.test(name)) {
      report('is set by the service in marketing email', 'headers', name)
    }
  }
}

/** The body of POST /v1/emails. `parseEmail` checks more. */
export const emailSchema = v.pipe(
  v.strictObject({
    from: address,
    to: addresses(1),
    cc: v.nullish(addresses(0)),
    bcc: v.nullish(addresses(0)),
    replyTo: v.nullish(address),
    subject: v.nullish(line(MAX_SUBJECT_LENGTH, { tabs: true })),
    html: v.nullish(body(MAX_HTML_BYTES)),
    text: v.nullish(body(MAX_TEXT_BYTES)),
    templateId: v.nullish(line(MAX_TEMPLATE_ID_LENGTH)),
    variables: v.nullish(variables),
    headers: v.nullish(headers),
    tags: v.nullish(tags),
    class: v.nullish(messageClass, 'transactional'),
    attachments: v.nullish(v.never('attachments are not yet available')),
  }),
  crossFieldCheck(checkTogether),
)

/**
 * Parses an email of a request or of an item of a batch. Returns the email in the form that SQL takes, or all
 * problems at once. Lengths are in code points, sizes in bytes of UTF-8. Postgres can store all strings.
 * `headers` and `variables` are the objects of the input, not copies.
 */
export function parseEmail(input: unknown): Parsed<Email> {
  const parsed = parseBody(emailSchema, input)
  if ('fields' in parsed) return parsed
  const { value: given } = parsed
  const { from, to } = given
  const cc = given.cc ?? []
  const bcc = given.bcc ?? []
  return {
    value: {
      class: given.class,
      sender: formatAddress(from),
      from_address: from.address,
      from_domain: from.domain,
      to: to.map(formatAddress),
      cc: cc.map(formatAddress),
      bcc: bcc.map(formatAddress),
      to_addresses: to.map((one) => one.address).join(', '),
      recipients: recipients(to, cc, bcc),
      reply_to: given.replyTo ? formatAddress(given.replyTo) : null,
      subject: given.subject ?? null,
      html: given.html ?? null,
      text: given.text ?? null,
      template_id: given.templateId ?? null,
      variables: given.variables ?? null,
      headers: given.headers ?? null,
      tags: given.tags ?? [],
    },
  }
}

function recipients(...lists: Address[][]): string[] {
  return [...new Set(lists.flat().map((one) => one.address.toLowerCase()))]
}
