import type { SmsToSend } from '../db/api.gen.ts'
import type { SendResult } from './email.ts'

/** An SMS as a provider is handed it. */
export type OutgoingSms = SmsToSend

/**
 * What became of a hand-over, and which parts the network took in it, whatever the outcome: those are
 * never sent again. `sent` when all parts of the message are taken; `ambiguous` when a part was sent
 * of which nobody knows; otherwise `failed` for good or `deferred` for now.
 */
export type SmsSendResult = SendResult & { parts?: TakenPart[] }

/** A part that the network took, as api.finish_messages takes it, hence its names. */
export type TakenPart = {
  /** From 1 on. */
  part: number
  /** The id that the network gave it, in lower case as it wrote it. */
  network_id: string
}

/** What a network reports of a part, as api.record_sms_receipts takes it, hence its names. */
export type SmsReceipt = {
  provider: string
  /** How the id may have been spelt when the part was taken, the likeliest first; at most 8. */
  network_ids: string[]
  /** Whom the part was for, in E.164; absent when the network does not say. */
  phone?: string
  type: 'delivered' | 'deferred' | 'failed' | 'expired'
  /** ISO 8601. */
  occurred_at: string
  code?: string
  text?: string
}

/** A message from a phone to one of our numbers, as api.record_keywords takes it, hence its names. */
export type InboundSms = {
  provider: string
  /** In E.164. */
  from: string
  /** The sender ID that was written to. */
  to: string
  body: string
  /** ISO 8601. */
  received_at: string
}

/** A message from a phone that cannot be recorded, with the reason. */
export type IgnoredSms = {
  provider: string
  /** As the network wrote it. */
  from: string
  to: string
  body: string
  reason: string
}

/** What comes from a network by itself. The network is told that we have it once these settle. */
export type SmsListener = {
  onReceipt(receipt: SmsReceipt): Promise<void>
  onInbound(message: InboundSms): Promise<void>
  onIgnored(message: IgnoredSms): void
}

/** Takes SMS off our hands, and tells its listener what becomes of them and what phones answer. */
export type SmsProvider = {
  name: string
  /** Hand an SMS over, all its parts but those that are taken already. Whatever it throws counts as ambiguous. */
  send(sms: OutgoingSms): Promise<SmsSendResult>
  /** What is wrong with its settings or its far end, in one line with the cure; null when all is well. */
  examine(): Promise<string | null>
  /** Stops taking and listening; what is under way gets a moment to finish. */
  close(): Promise<void>
}
