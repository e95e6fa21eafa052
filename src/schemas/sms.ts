import * as v from 'valibot'
import type { AcceptSms } from '../db/api.gen.ts'
import { segmentsOf } from '../sms/segments.ts'
import { checkedBy, type Parsed, parseBody, text } from './fields.ts'
import { isLongerThan, tooLong } from './limits.ts'
import { messageClass, tags } from './message.ts'
import { timestamp } from './timestamp.ts'

/** An item of api.accept_sms without its place in the call. */
export type Sms = Omit<AcceptSms, 'call' | 'index' | 'error'>

const MAX_LENGTH = 1600
const MAX_SEGMENTS = 10

const E164 = /^\+[1-9]\d{6,14}$/
const SENDER_ID = /^(?:\+[1-9]\d{6,14}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/

/** Numbers are not normalised: libraries change numbers that their numbering plans do not contain. */
export const phone = v.pipe(
  v.string('must be a string'),
  v.regex(E164, 'must be a phone number in E.164, as +27821234567'),
)

const senderId = v.pipe(
  v.string('must be a string'),
  v.regex(
    SENDER_ID,
    'must be 1 to 11 letters, digits and spaces with at least one letter, or a phone number in E.164',
  ),
)

/**
 * A text and the number of its segments. 10 segments hold at most 1 530 characters, so the limit on characters
 * refuses nothing more; it avoids dividing a long text into segments.
 */
const body = checkedBy(
  v.pipe(text(), v.minLength(1), v.maxLength(MAX_LENGTH)),
  (value, report): { text: string; segments: number } | undefined => {
    const { output, issues = [] } = v.safeParse(text(), value)
    for (const { message } of issues) report(message)
    if (typeof output !== 'string') return
    if (output.length === 0) report('must not be empty')
    if (isLongerThan(output, MAX_LENGTH)) {
      report(tooLong(MAX_LENGTH, output))
      return
    }
    const { encoding, parts } = segmentsOf(output)
    if (parts.length > MAX_SEGMENTS) {
      const because = encoding === 'ucs2' ? ', as some of its characters are not in GSM-7' : ''
      report(`must be at most ${MAX_SEGMENTS} segments but has ${parts.length}${because}`)
    }
    return { text: output, segments: parts.length }
  },
)

/** The body of POST /v1/sms. */
export const smsSchema = v.strictObject({
  to: phone,
  body,
  class: messageClass,
  senderId: v.nullish(senderId),
  scheduledAt: v.nullish(timestamp),
  tags: v.nullish(tags),
})

/**
 * Parses an SMS of a request or of an item of a batch. Returns the SMS in the form that SQL takes, or all problems
 * at once. SQL checks whether the organisation may use the sender ID, and the range of `scheduledAt`.
 */
export function parseSms(input: unknown): Parsed<Sms> {
  const parsed = parseBody(smsSchema, input)
  if ('fields' in parsed) return parsed
  const { value: given } = parsed
  return {
    value: {
      class: given.class,
      sender_id: given.senderId ?? null,
      recipient: given.to,
      body: given.body.text,
      segments: given.body.segments,
      scheduled_at: given.scheduledAt ?? null,
      tags: given.tags ?? [],
    },
  }
}
