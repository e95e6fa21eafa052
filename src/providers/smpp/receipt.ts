import { storable } from '../../text/storable.ts'
import type { SmsReceipt } from '../sms.ts'
import { phoneOf } from './address.ts'
import { networkIdOf, spellingsOf } from './network-id.ts'
import type { Fields } from './pdu.ts'
import { bodyOf } from './text.ts'

/** The message type in esm_class, bits 5 to 2: a delivery receipt or an intermediate notification. */
const MESSAGE_TYPE_MASK = 0x3c
const DELIVERY_RECEIPT = 0x04
const INTERMEDIATE_NOTIFICATION = 0x20

type Type = SmsReceipt['type']

/**
 * The receipt type of each state, by the start of its name in the text form and by message_state (5.2.28).
 * ENROUTE: the phone is off or out of reach, and the network keeps trying. ACCEPTD, UNKNOWN and other states
 * are ignored.
 */
const STATES: [pattern: RegExp, number: number, name: string, type: Type][] = [
  [/^DELIV/, 2, 'DELIVRD', 'delivered'],
  [/^EXPIR/, 3, 'EXPIRED', 'expired'],
  [/^DELET/, 4, 'DELETED', 'failed'],
  [/^(UNDEL|FAIL)/, 5, 'UNDELIV', 'failed'],
  [/^REJ/, 8, 'REJECTD', 'failed'],
  [/^(ENROUT|BUFF)/, 1, 'ENROUTE', 'deferred'],
]

/** The oldest plausible date: messages are valid for a day. */
const MAX_AGE_MS = 2 * 24 * 60 * 60 * 1000

/** Whether a deliver_sm is a receipt. Its text does not count, because any phone can write such a text. */
export function isReceipt({ esm_class, receipted_message_id, message_state }: Fields): boolean {
  const type = (esm_class ?? 0) & MESSAGE_TYPE_MASK
  return (
    type === DELIVERY_RECEIPT ||
    type === INTERMEDIATE_NOTIFICATION ||
    receipted_message_id !== undefined ||
    message_state !== undefined
  )
}

/**
 * Reads a receipt by its optional parameters, or without them by its text (appendix B). Returns null if it has
 * no id or no known state.
 */
export function readReceipt(fields: Fields, now: Date): SmsReceipt | null {
  const text = bodyOf(fields)
  const id = networkIdOf(fields.receipted_message_id) ?? networkIdOf(wordOf(text, 'id'))
  const word = wordOf(text, 'stat')?.toUpperCase() ?? ''
  const number = fields.message_state
  const state = STATES.find((one) => (number === undefined ? one[0].test(word) : one[1] === number))
  if (!id || !state) return null
  const [, , name, type] = state
  const phone = phoneOf(fields.source_addr, fields.source_addr_ton)
  const code = errorOf(fields, text)
  return {
    provider: 'smpp',
    network_ids: spellingsOf(storable(id)),
    ...(phone ? { phone } : {}),
    type,
    occurred_at: dateOf(wordOf(text, 'done date'), now).toISOString(),
    ...(code ? { code } : {}),
    text: code ? `${name} (err ${code})` : name,
  }
}

/** Returns the value of a name in `id:0123 stat:DELIVRD`, without `text:`, which quotes the message. */
function wordOf(text: string, name: string): string | undefined {
  const head = text.replace(/\btext:.*$/is, '')
  return new RegExp(`(?:^|\\s)${name}:(\\S{1,100})`, 'i').exec(head)?.[1]
}

/** Returns the network's error code; undefined if it is zero or absent. */
function errorOf({ network_error_code: octets }: Fields, text: string): string | undefined {
  const word = wordOf(text, 'err')?.slice(0, 20) ?? octets?.subarray(1, 3).toString('hex')
  return word === undefined || /^0*$/.test(word) ? undefined : storable(word)
}

/**
 * Reads `YYMMDDhhmm` or `YYMMDDhhmmss` as UTC; SMPP does not define the time zone. Returns now if the date
 * is implausible, for example in the future because the network writes its local time.
 */
function dateOf(text: string | undefined, now: Date): Date {
  const [, year, month, day, hour, minute, second] =
    /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?$/.exec(text ?? '') ?? []
  const time = Date.parse(`20${year}-${month}-${day}T${hour}:${minute}:${second ?? '00'}Z`)
  const age = now.getTime() - time
  if (!(age >= 0 && age <= MAX_AGE_MS)) return now
  // Without seconds use the end of the minute, so that a receipt is not earlier than its attempt.
  return new Date(second === undefined ? Math.min(time + 59_000, now.getTime()) : time)
}
