import { createHmac, timingSafeEqual } from 'node:crypto'
import { domainToASCII } from 'node:url'
import * as v from 'valibot'
import { storable } from '../../text/storable.ts'
import type { Callback, Receipt } from '../email.ts'
import { readMessageId } from '../message-id.ts'

const MAX_TEXT_LENGTH = 1000
const MAX_CODE_LENGTH = 50

/** RFC 3463 and RFC 7505. Exchange also uses the second for an unknown recipient. */
const NO_SUCH_MAILBOX = ['5.1.1', '5.1.10']

/** Codes of "not delivering to …": the address is on a suppression list of Mailgun. */
const SUPPRESSED_BY_MAILGUN = /^(605|606|607)$/

/** An enhanced status code, alone or before the text of the reply. */
const ENHANCED_CODE = /^(?:smtp; *)?(?:[245]\d\d[ -])?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/i

/** The receipt type of each Mailgun event; other events are ignored. */
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

/** Text for people. A malformed one must not make the event invalid. */
const freeText = v.fallback(v.pipe(v.union([v.string(), v.number()]), v.transform(String)), '')

const deliveryStatus = v.object({
  code: freeText,
  'enhanced-code': freeText,
  'bounce-code': freeText,
  message: freeText,
  description: freeText,
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
  severity: freeText,
  reason: freeText,
  reject: v.fallback(v.object({ reason: freeText }), { reason: '' }),
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
      // The signed bytes are this and the token without a separator, so the length must be fixed: else
      // digits of one could pass as part of the other. Ten digits suffice until 2286.
      timestamp: v.pipe(v.string(), v.regex(/^\d{10}$/)),
      token: word,
      signature: v.string(),
    }),
    'event-data': v.looseObject({}),
  }),
)

/**
 * Creates a reader for the bodies of Mailgun's callbacks. It returns undefined if a body is forged or
 * malformed. The signature covers time and token but not the event (documentation.mailgun.com,
 * "Securing webhooks").
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

/** Compares in constant time. */
function isEqual(expected: Buffer, given: Buffer): boolean {
  return expected.length === given.length && timingSafeEqual(expected, given)
}

/**
 * Returns the receipt of an event from Mailgun's callbacks or its events API; null if Postgram ignores events
 * of this type or did not send the message.
 */
export function receiptOf(event: unknown): Receipt | null {
  const parsed = v.safeParse(eventSchema, event)
  if (!parsed.success) return null
  const { id, timestamp, recipient, message, flags } = parsed.output
  const type = typeOf(parsed.output)
  const messageId = readMessageId(message.headers['message-id'])
  // A routed message came from outside, where anyone can copy a Message-ID of ours.
  if (!type || !messageId || flags['is-routed']) return null
  return {
    message_id: messageId,
    provider_event_id: `mailgun:${id}`,
    type,
    occurred_at: new Date(timestamp * 1000).toISOString(),
    ...(recipient === undefined ? {} : { recipient }),
    ...codeAndText(parsed.output),
    ...(type === 'bounced' ? { is_hard: isHard(parsed.output) } : {}),
  }
}

function typeOf({ event, severity, reason }: MailgunEvent): Receipt['type'] | undefined {
  if (event !== 'failed') return types.get(event)
  // Reason "old" means that Mailgun stopped trying. The severity of that event is "temporary" for a domain
  // without MX (feedback.mailgun.com/forums/914635, suggestion 37219720).
  return types.get(`failed ${reason === 'old' ? 'permanent' : severity}`)
}

function codeAndText({ 'delivery-status': status, reject }: MailgunEvent): {
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

/** Whether the mailbox does not exist. Only then is the address suppressed for every organisation. */
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
