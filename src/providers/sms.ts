import type { SmsReceipt as ReceiptRecord, SmsToSend, TakenPart } from '../db/api.gen.ts'
import type { SendResult } from './email.ts'

/** An SMS as a provider receives it. */
export type OutgoingSms = SmsToSend

/**
 * The result of an attempt, with the parts that the network took in it, whatever the outcome. Those
 * parts are never sent again. `sent`: the network has all parts; `ambiguous`: it may have a part
 * that it did not confirm; otherwise `failed` or `deferred`.
 */
export type SmsSendResult = SendResult & { parts?: TakenPart[] }

/** The delivery receipt of a part. */
export type SmsReceipt = ReceiptRecord & { type: 'delivered' | 'deferred' | 'failed' | 'expired' }

/** An SMS from a phone to one of our sender IDs. The names are those that api.record_keywords takes. */
export type InboundSms = {
  provider: string
  /** In E.164. */
  from: string
  /** The sender ID that the phone wrote to. */
  to: string
  body: string
  /** ISO 8601. */
  received_at: string
}

/** An SMS from a phone that cannot be recorded, with the reason; `from` and `to` are as the network wrote them. */
export type IgnoredSms = Omit<InboundSms, 'received_at'> & { reason: string }

/** Takes receipts and inbound SMS. The provider confirms them to the network once the promises settle. */
export type SmsListener = {
  onReceipt(receipt: SmsReceipt): Promise<void>
  onInbound(message: InboundSms): Promise<void>
  onIgnored(message: IgnoredSms): void
}

/** Sends SMS, and passes receipts and inbound SMS to its listener. */
export type SmsProvider = {
  name: string
  /** Sends the parts of an SMS that the network has not taken yet. Any exception counts as ambiguous. */
  send(sms: OutgoingSms): Promise<SmsSendResult>
  /** Returns null if settings and network work; otherwise a hint: the problem and its fix in one line. */
  check(): Promise<string | null>
  /** Stops sending and listening, and waits some seconds for attempts in progress. */
  close(): Promise<void>
}
