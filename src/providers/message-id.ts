import { encodeId, ID_DIGITS, uuidOf } from '../text/ids.ts'

const OURS = /^<?em_([0-7][0-9a-hjkmnp-tv-z]{25})(?:\.\d{1,2})?@[^<>@\s]+>?$/

/**
 * Returns the Message-ID of an email without angle brackets: its id, the number of the copy if it is
 * one, and the MAIL FROM host. It is the same in every attempt, so that a provider can be asked for it.
 */
export function messageIdOf(email: {
  id: string
  copy: number | null
  mailFromDomain: string
}): string {
  const copy = email.copy === null ? '' : `.${email.copy}`
  return `${encodeId('em', email.id)}${copy}@${email.mailFromDomain}`
}

/** Returns the UUID in a Message-ID, with or without angle brackets; undefined if it is foreign. */
export function readMessageId(messageId: string): string | undefined {
  const [, digits] = OURS.exec(messageId) ?? []
  if (!digits) return undefined
  let value = 0n
  for (const digit of digits) value = (value << 5n) | BigInt(ID_DIGITS.indexOf(digit))
  return uuidOf(value.toString(16).padStart(32, '0'))
}
