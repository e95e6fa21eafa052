import { createHmac, timingSafeEqual } from 'node:crypto'
import { domainToASCII } from 'node:url'
import * as v from 'valibot'
import { storable } from '../../text/storable.ts'
import type { Callback, Receipt } from '../email.ts'
import { readMessageId } from '../message-id.ts'

const MAX_TEXT_LENGTH = 1000
const MAX_CODE_LENGTH = 50

/** RFC 3463 and 7505; the second is also what Exchange says of a recipient that it does not find. */
const NO_SUCH_MAILBOX = ['5.1.1', '5.1.10']

/** "not delivering to …" an address that Mailgun itself keeps from being sent to. */
const SUPPRESSED_BY_MAILGUN = /^(605|606|607)$/

/** An enhanced status code, alone or before the words of the server that said it. */
const ENHANCED_CODE = /^(?:smtp; *)?(?:[245]\d\d[ -])?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/i

/** What Mailgun's events are to us; all others mean nothing here. */
const types = new Map<string, Receipt['type']>([
  ['accepted', 'sent'],
  ['rejected', 'failed'],
  ['delivered', 'delivered'],
  ['failed temporary', 'deferred'],
  ['failed permanent', 'bounced'],
  ['complained', 'complained'],
  ['unsubscribed', 'opted_out'],
])

const word = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,200}$/))

/** Words for people: whatever they are, they must not lose us the event. */
const words = v.fallback(v.pipe(v.union([v.string(), v.number()]), v.transform(String)), '')

const deliveryStatus = v.object({
  code: words,
  'enhanced-code': words,
  'bounce-code': words,
  message: words,
  description: words,
})

const eventSchema = v.object({
  id: word,
  event: v.string(),
  timestamp: v.pipe(v.number(), v.minValue(0), v.maxValue(9_999_999_999)),
  recipient: v.optional(
    v.pipe(
      v.string(),
      v.toLowerCase(),
      v.minLength(3),
      v.maxLength(254),
      v.regex(/^[^\p{Cc}\p{Cs}]+@[^\p{Cc}\p{Cs}\s@]+$/u),
      // Recipients are kept with their domains in ASCII.
      v.transform((text) => text.replace(/[^@]+$/, (domain) => domainToASCII(domain) || domain)),
    ),
  ),
  severity: words,
  reason: words,
  reject: v.fallback(v.object({ reason: words }), { reason: '' }),
  'delivery-status': v.fallback(deliveryStatus, v.getFallbacks(deliveryStatus)),
  message: v.object({ headers: v.object({ 'message-id': v.string() }) }),
  flags: v.fallback(v.object({ 'is-routed': v.fallback(v.boolean(), false) }), {
    'is-routed': false,
  }),
})

type MailgunEvent = v.InferOutput<typeof eventSchema>

const callbackSchema = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    signature: v.object({
      // Signed is this and the token without a break between them: with more digits or fewer, some
      // of one could pass for the other's. Ten it is until the year 2286.
      timestamp: v.pipe(v.string(), v.regex(/^\d{10}$/)),
      token: word,
      signature: v.string(),
    }),
    'event-data': v.looseObject({}),
  }),
)

/**
 * Reads bodies of Mailgun's webhooks, of which the signature covers time and token but not the event
 * (documentation.mailgun.com, "Securing webhooks"). Undefined when one is forged or makes no sense.
 */
export function createCallbackReader(signingKey: string): (body: string) => Callback | undefined {
  return (body) => {
    const parsed = v.safeParse(callbackSchema, body)
    if (!parsed.success) return undefined
    const { signature: signed, 'event-data': event } = parsed.output
    const { timestamp, token, signature } = signed
    const hmac = createHmac('sha256', signingKey).update(timestamp + token)
    if (!isEqual(Buffer.from(hmac.digest('hex')), Buffer.from(signature))) return undefined
    return { token, signedAt: Number(timestamp), receipt: receiptOf(event) }
  }
}

/** Takes the same time wherever the two differ. */
function isEqual(expected: Buffer, given: Buffer): boolean {
  return expected.length === given.length && timingSafeEqual(expected, given)
}

/**
 * What an event of Mailgun's means, as its webhooks and its events API tell it; null when it means
 * nothing to us, or is of mail that is not ours.
 */
export function receiptOf(event: unknown): Receipt | null {
  const parsed = v.safeParse(eventSchema, event)
  if (!parsed.success) return null
  const { id, timestamp, recipient, message, flags } = parsed.output
  const type = typeOf(parsed.output)
  const messageId = readMessageId(message.headers['message-id'])
  // What a route passes on came from outside, where anyone may write a Message-ID of ours on it.
  if (!type || !messageId || flags['is-routed']) return null
  return {
    message_id: messageId,
    provider_event_id: `mailgun:${id}`,
    type,
    occurred_at: new Date(timestamp * 1000).toISOString(),
    ...(recipient === undefined ? {} : { recipient }),
    ...saidOf(parsed.output),
    ...(type === 'bounced' ? { is_hard: isHard(parsed.output) } : {}),
  }
}

function typeOf({ event, severity, reason }: MailgunEvent): Receipt['type'] | undefined {
  if (event !== 'failed') return types.get(event)
  // It gives up with the reason "old", whatever severity it says, which for a domain without MX is
  // temporary (feedback.mailgun.com/forums/914635, suggestion 37219720).
  return types.get(`failed ${reason === 'old' ? 'permanent' : severity}`)
}

function saidOf({ 'delivery-status': status, reject }: MailgunEvent): {
  code?: string
  text?: string
} {
  const code = [status.code, status['enhanced-code']].filter((part) => part !== '').join(' ')
  const text = status.message || status.description || reject.reason
  return {
    ...(code === '' ? {} : { code: bounded(code, MAX_CODE_LENGTH) }),
    ...(text === '' ? {} : { text: bounded(text, MAX_TEXT_LENGTH) }),
  }
}

/** Only what says that the mailbox does not exist (interface 2.4): this is suppressed for everyone. */
function isHard({ 'delivery-status': status, reason }: MailgunEvent): boolean {
  if (reason.startsWith('suppress-') || SUPPRESSED_BY_MAILGUN.test(status.code)) return false
  const [enhanced] = [
    status['enhanced-code'],
    status['bounce-code'],
    status.message,
    status.description,
    reason,
  ].flatMap((text) => ENHANCED_CODE.exec(text)?.[1] ?? [])
  return enhanced !== undefined && NO_SUCH_MAILBOX.includes(enhanced)
}

function bounded(text: string, maxLength: number): string {
  return storable(text.slice(0, maxLength))
}
