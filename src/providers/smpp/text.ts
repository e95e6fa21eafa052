import { textOf } from '../../sms/segments.ts'
import { storable } from '../../text/storable.ts'
import type { Fields } from './pdu.ts'

/** esm_class: a user data header precedes the text. */
const HAS_HEADER = 0x40

/** Longer than any text with a keyword. */
const MAX_LENGTH = 2000

/** Returns the text of a PDU, from short_message or message_payload. */
export function bodyOf({ short_message, message_payload, esm_class, data_coding }: Fields): string {
  const octets = (short_message?.length ? short_message : message_payload) ?? Buffer.alloc(0)
  const hasHeader = ((esm_class ?? 0) & HAS_HEADER) !== 0
  const text = octets.subarray(hasHeader ? (octets[0] ?? 0) + 1 : 0)
  return storable(decode(text, data_coding ?? 0).slice(0, MAX_LENGTH))
}

/** Decodes by data_coding (SMPP 3.4, 5.2.19; TS 23.038, 4); unknown ones as Latin 1, which has ASCII. */
function decode(octets: Buffer, coding: number): string {
  // 0x1x adds a message class to the same alphabets; 0xfx has a bit for GSM-7 or 8-bit data.
  if (coding === 0x00 || coding === 0x10 || (coding & 0xf4) === 0xf0) return textOf(octets)
  if (coding === 0x08 || coding === 0x18) return decodeUcs2(octets)
  return octets.toString('latin1')
}

function decodeUcs2(octets: Buffer): string {
  // Drops half a character at the end.
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString('utf16le')
}
