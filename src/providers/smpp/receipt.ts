import { storable } from '../../text/storable.ts'
import type { SmsReceipt } from '../sms.ts'
import { phoneOf } from './address.ts'
import { networkIdOf, spellingsOf } from './network-id.ts'
import type { Fields } from './pdu.ts'
import { bodyOf } from './text.ts'

/** esm_class, bits 5 to 2: a receipt of the SMSC, or its note that a message is still on its way. */
const TYPE_OF_MESSAGE = 0x3c
const RECEIPT = 0x04
const NOTE = 0x20

type Type = SmsReceipt['type']

/**
 * What states mean, by the first letters of the text form and by message_state (5.2.28). ENROUTE:
 * the phone is off or out of reach, the network keeps trying. ACCEPTD, UNKNOWN and the others say
 * nothing of what became of the message.
 */
const STATES: [word: RegExp, number: number, name: string, type: Type][] = [
  [/^DELIV/, 2, 'DELIVRD', 'delivered'],
  [/^EXPIR/, 3, 'EXPIRED', 'expired'],
  [/^DELET/, 4, 'DELETED', 'failed'],
  [/^(UNDEL|FAIL)/, 5, 'UNDELIV', 'failed'],
  [/^REJ/, 8, 'REJECTD', 'failed'],
  [/^(ENROUT|BUFF)/, 1, 'ENROUTE', 'deferred'],
]

/** How old and how far ahead a date may be: receipts come within the day that messages are valid for. */
const MAX_AGE_MS = 2 * 24 * 60 * 60 * 1000

/** Whether a deliver_sm is a receipt. A text that looks like one is not: anybody can write that. */
export function isReceipt({ esm_class, receipted_message_id, message_state }: Fields): boolean {
  const type = (esm_class ?? 0) & TYPE_OF_MESSAGE
  return (
    type === RECEIPT ||
    type === NOTE ||
    receipted_message_id !== undefined ||
    message_state !== undefined
  )
}

/**
 * Read a receipt, by its parameters, or by its text (appendix B) where they are not there. null when
 * it does not say which message it is for, or nothing of what became of it.
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

/** The word after a name, as in `id:0123 stat:DELIVRD`. Its own text comes last, and is not looked into. */
function wordOf(text: string, name: string): string | undefined {
  const head = text.replace(/\btext:.*$/is, '')
  return new RegExp(`(?:^|\\s)${name}:(\\S{1,100})`, 'i').exec(head)?.[1]
}

/** The network's error; undefined where there was none. */
function errorOf({ network_error_code: octets }: Fields, text: string): string | undefined {
  const word = wordOf(text, 'err')?.slice(0, 20) ?? octets?.subarray(1, 3).toString('hex')
  return word === undefined || /^0*$/.test(word) ? undefined : storable(word)
}

/**
 * `YYMMDDhhmm` with seconds or without, read as UTC, which it does not say; now where that makes no
 * sense, as for a network that writes the hours of a place east of Greenwich.
 */
function dateOf(text: string | undefined, now: Date): Date {
  const [, year, month, day, hour, minute, second] =
    /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?$/.exec(text ?? '') ?? []
  const time = Date.parse(`20${year}-${month}-${day}T${hour}:${minute}:${second ?? '00'}Z`)
  const age = now.getTime() - time
  if (!(age >= 0 && age <= MAX_AGE_MS)) return now
  // Without seconds it is the minute's end, or it would seem to come before what was sent in that minute.
  return new Date(second === undefined ? Math.min(time + 59_000, now.getTime()) : time)
}
