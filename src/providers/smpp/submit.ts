import { octetsOf, segmentsOf } from '../../sms/segments.ts'
import type { OutgoingSms } from '../sms.ts'

/** A part of an SMS: its number, and the fields of its submit_sm. */
export type Part = { part: number; fields: Record<string, unknown> }

const TON = { international: 1, networkSpecific: 3, alphanumeric: 5 } as const
const NPI = { unknown: 0, e164: 1 } as const

const DATA_CODING = { gsm7: 0, ucs2: 8 } as const

/** esm_class: a user data header precedes the text. */
const HAS_HEADER = 0x40

/** registered_delivery: a final receipt for success and failure. */
const WITH_RECEIPT = 1

/** validity_period: the network tries for one day after it took the message. */
const VALID_FOR = '000001000000000R'

/** Returns the submit_sm fields of the parts that the network has not taken yet. */
export function partsOf({ id, sender, recipient, body, takenParts }: OutgoingSms): Part[] {
  const { encoding, parts } = segmentsOf(body)
  const common = {
    ...sourceOf(sender),
    dest_addr_ton: TON.international,
    dest_addr_npi: NPI.e164,
    destination_addr: recipient.replace(/^\+/, ''),
    validity_period: VALID_FOR,
    registered_delivery: WITH_RECEIPT,
    data_coding: DATA_CODING[encoding],
  }
  return parts
    .map((text, index) => {
      const octets = octetsOf(text, encoding)
      const isAlone = parts.length === 1
      return {
        part: index + 1,
        fields: {
          ...common,
          esm_class: isAlone ? 0 : HAS_HEADER,
          short_message: isAlone
            ? octets
            : Buffer.concat([headerOf(id, parts.length, index + 1), octets]),
        },
      }
    })
    .filter(({ part }) => !takenParts.includes(String(part)))
}

/**
 * Returns the user data header by which a phone joins the parts (3GPP TS 23.040, 9.2.3.24.1). The reference
 * is the end of the message's id, so that parts of a later attempt match those that arrived.
 */
function headerOf(id: string, total: number, number: number): Buffer {
  return Buffer.from([5, 0, 3, Number.parseInt(id.slice(-2), 16), total, number])
}

function sourceOf(sender: string) {
  const [ton, npi] = /^\+\d+$/.test(sender)
    ? [TON.international, NPI.e164]
    : /^\d+$/.test(sender)
      ? [TON.networkSpecific, NPI.unknown]
      : [TON.alphanumeric, NPI.unknown]
  return {
    source_addr_ton: ton,
    source_addr_npi: npi,
    source_addr: sender.replace(/^\+/, ''),
  }
}
