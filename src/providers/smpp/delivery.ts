import type { InboundSms, SmsReceipt } from '../sms.ts'
import { phoneOf, senderOf } from './address.ts'
import type { Fields } from './pdu.ts'
import { isReceipt, readReceipt } from './receipt.ts'
import { bodyOf } from './text.ts'

/** What a deliver_sm tells us; null where that is nothing. */
export type Delivery = { receipt: SmsReceipt } | { inbound: InboundSms } | null

export function readDelivery(fields: Fields, now: Date): Delivery {
  if (isReceipt(fields)) {
    const receipt = readReceipt(fields, now)
    return receipt && { receipt }
  }
  const from = phoneOf(fields.source_addr, fields.source_addr_ton)
  const to = senderOf(fields.destination_addr, fields.dest_addr_ton)
  // Who has no number of their own, such as a service of the network, has nothing to opt out of.
  if (!from || !to) return null
  return {
    inbound: {
      provider: 'smpp',
      from,
      to,
      body: bodyOf(fields),
      received_at: now.toISOString(),
    },
  }
}
