import type { IgnoredSms, InboundSms, SmsReceipt } from '../sms.ts'
import { isNational, phoneOf, senderOf } from './address.ts'
import type { Fields } from './pdu.ts'
import { isReceipt, readReceipt } from './receipt.ts'
import { bodyOf } from './text.ts'

/** The content of a deliver_sm; null for a receipt without an id or a known state. */
export type Delivery =
  | { receipt: SmsReceipt }
  | { inbound: InboundSms }
  | { ignored: IgnoredSms }
  | null

const NO_COUNTRY = "the sender's number has no country code: set SMPP_COUNTRY_CODE"
const NO_PHONE = 'the sender is not a phone number'
const NO_DESTINATION = 'the network names no destination'

/** Reads a deliver_sm. Numbers in national form belong to the country of `countryCode`, if given. */
export function readDelivery(
  fields: Fields,
  now: Date,
  countryCode: string | null = null,
): Delivery {
  if (isReceipt(fields)) {
    const receipt = readReceipt(fields, now)
    return receipt && { receipt }
  }
  const { source_addr = '', source_addr_ton, destination_addr, dest_addr_ton } = fields
  const from = phoneOf(source_addr, source_addr_ton, countryCode)
  const to = senderOf(destination_addr, dest_addr_ton, countryCode)
  const message = { provider: 'smpp', body: bodyOf(fields) }
  if (from && to) return { inbound: { ...message, from, to, received_at: now.toISOString() } }
  const isWithoutCountry = countryCode === null && isNational(source_addr, source_addr_ton)
  const reason = from ? NO_DESTINATION : isWithoutCountry ? NO_COUNTRY : NO_PHONE
  return { ignored: { ...message, from: source_addr, to: to ?? '', reason } }
}
