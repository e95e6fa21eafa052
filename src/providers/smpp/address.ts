import { storable } from '../../text/storable.ts'

/** Types of number (TON, SMPP 3.4, 5.2.5). */
const NATIONAL = 2
const ALPHANUMERIC = 5

/** The trunk prefix of countries where it is not 0. It precedes national numbers and is not part of them. */
const TRUNK_PREFIXES: Record<string, string> = {
  '1': '1',
  '7': '8',
  '36': '06',
  // In Italy, Ivory Coast, Benin and Congo the 0 is part of the number.
  '39': '',
  '225': '',
  '229': '',
  '242': '',
}

/** A national number with fewer digits is a short code. */
const MIN_NATIONAL_DIGITS = 7

/**
 * Returns a phone number in E.164; undefined for anything else, such as a name, or a number in national form
 * without a `countryCode`.
 */
export function phoneOf(
  address: string | undefined,
  ton: number | undefined,
  countryCode: string | null = null,
): string | undefined {
  const text = (address ?? '').trim()
  const number = isNational(text, ton)
    ? inCountry(text, countryCode)
    : text.replace(/^(?:\+|00)/, '')
  return ton !== ALPHANUMERIC && /^[1-9]\d{6,14}$/.test(number) ? `+${number}` : undefined
}

/** Whether a number has no country code: its type is national, or it begins with a single 0. */
export function isNational(address: string, ton: number | undefined): boolean {
  if (ton === ALPHANUMERIC) return false
  return (ton === NATIONAL ? /^(?!00)\d+$/ : /^0[1-9]\d+$/).test(address.trim())
}

/** Returns one of our sender IDs: a number in E.164, a short code or a name. */
export function senderOf(
  address: string | undefined,
  ton: number | undefined,
  countryCode: string | null = null,
): string | undefined {
  const text = storable((address ?? '').trim())
  return phoneOf(text, ton, countryCode) ?? (text || undefined)
}

/** Returns the digits of a national number with its country code; '' without a country code. */
function inCountry(text: string, countryCode: string | null): string {
  if (countryCode === null) return ''
  const prefix = TRUNK_PREFIXES[countryCode] ?? '0'
  const digits = text.startsWith(prefix) ? text.slice(prefix.length) : text
  return digits.length < MIN_NATIONAL_DIGITS ? '' : countryCode + digits
}
