/** The body of a webhook request (src/docs/api.md#event-object). */
export type WebhookEvent = EmailEvent | SmsEvent

export type EmailEvent = {
  /** `evt_…`, the same at every attempt and replay. */
  id: string
  type: 'email.sent' | 'email.delivered' | 'email.bounced' | 'email.complained' | 'email.failed'
  /** ISO 8601, UTC. */
  occurredAt: string
  data: EmailMessage
}

export type SmsEvent = {
  /** `evt_…`, the same at every attempt and replay. */
  id: string
  type: 'sms.sent' | 'sms.delivered' | 'sms.failed' | 'sms.opted_out'
  /** ISO 8601, UTC. */
  occurredAt: string
  data: SmsMessage
}

type Message = {
  id: string
  class: 'transactional' | 'marketing'
  to: string
  from: string
  tags: string[]
  /** Set once the message failed, bounced, expired or was rejected. */
  error: { code: string; message: string | null } | null
  /** ISO 8601, UTC, like `sentAt` and `deliveredAt`. */
  createdAt: string
  sentAt: string | null
  deliveredAt: string | null
}

/** An email as it was when the event occurred. */
export type EmailMessage = Message & {
  channel: 'email'
  status: 'queued' | 'sent' | 'delivered' | 'bounced' | 'complained' | 'failed' | 'rejected'
  subject: string
}

/** An SMS as it was when the event occurred. */
export type SmsMessage = Message & {
  channel: 'sms'
  status: 'scheduled' | 'queued' | 'sent' | 'delivered' | 'failed' | 'expired' | 'rejected'
  subject: null
  segments: number
  credits: number
  scheduledAt: string | null
}

export type SignatureProblem =
  | 'no_header'
  | 'malformed'
  | 'no_match'
  | 'too_old'
  | 'too_new'
  | 'body'
  | 'secret'

/** Why a request must not be trusted. `body` and `secret` mean that the receiver called verifyEvent wrongly. */
export class WebhookSignatureError extends Error {
  constructor(reason: SignatureProblem, message: string)
  readonly reason: SignatureProblem
}

/**
 * Returns the event in a request body. Throws WebhookSignatureError unless one of the secrets signed the
 * raw body, and the time of the signature is within the tolerance.
 */
export function verifyEvent(request: {
  /** The raw body, before any JSON parser. */
  body: string | Uint8Array
  /** The header Service-Signature, as Node or fetch returns it. */
  signature: string | string[] | null | undefined
  /** The endpoint's signing secret, `whsec_…`; during a rotation both secrets. */
  secrets: string | readonly string[]
  /** How far the time of the signature may differ from `now`, in seconds [300]. */
  toleranceSeconds?: number | undefined
  now?: Date | undefined
}): WebhookEvent
