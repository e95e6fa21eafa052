import { textOf } from '../../sms/segments.ts'
import { storable } from '../../text/storable.ts'
import type { Fields } from './pdu.ts'

/** esm_class: a header stands before the text. */
const HAS_HEADER = 0x40

/** Longer than any text that has to be understood. */
const MAX_LENGTH = 2000

/** The text of a message, from wherever it stands in the PDU. */
export function bodyOf({ short_message, message_payload, esm_class, data_coding }: Fields): string {
  const octets = (short_message?.length ? short_message : message_payload) ?? Buffer.alloc(0)
  const hasHeader = ((esm_class ?? 0) & HAS_HEADER) !== 0
  const text = octets.subarray(hasHeader ? (octets[0] ?? 0) + 1 : 0)
  return storable(decode(text, data_coding ?? 0).slice(0, MAX_LENGTH))
}

/** By data_coding (SMPP 3.4, 5.2.19; TS 23.038, 4). What it does not name is read as Latin 1, which has all of ASCII. */
function decode(octets: Buffer, coding: number): string {
  // With a message class (0x1x) the alphabet stands in the same place; 0xfx has GSM-7 or octets.
  if (coding === 0x00 || coding === 0x10 || (coding & 0xf4) === 0xf0) return textOf(octets)
  if (coding === 0x08 || coding === 0x18) return decodeUcs2(octets)
  return octets.toString('latin1')
}

function decodeUcs2(octets: Buffer): string {
  // Half a character at the end is none.
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString('utf16le')
}
