import { storable } from '../../text/storable.ts'

/** The type of number (TON) that an address is sent with (SMPP 3.4, 5.2.5). */
const NATIONAL = 2
const ALPHANUMERIC = 5

/** What precedes a number within its country and is no part of it, where that is not one 0. */
const TRUNK_PREFIXES: Record<string, string> = {
  '1': '1',
  '7': '8',
  '36': '06',
  // In Italy, Ivory Coast, Benin and Congo the 0 is a part of the number.
  '39': '',
  '225': '',
  '229': '',
  '242': '',
}

/** With fewer digits a number in national form is a short code. */
const MIN_NATIONAL_DIGITS = 7

/**
 * A phone's number in E.164; undefined for anything else, such as a name or, unless the country's
 * calling code is given, a number in national form.
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

/** Whether a number comes without its country: its type says so, or it begins with one 0. */
export function isNational(address: string, ton: number | undefined): boolean {
  if (ton === ALPHANUMERIC) return false
  return (ton === NATIONAL ? /^(?!00)\d+$/ : /^0[1-9]\d+$/).test(address.trim())
}

/** One of our sender IDs: a number in E.164, a short code or a word. */
export function senderOf(
  address: string | undefined,
  ton: number | undefined,
  countryCode: string | null = null,
): string | undefined {
  const text = storable((address ?? '').trim())
  return phoneOf(text, ton, countryCode) ?? (text || undefined)
}

/** The digits of a national number with its country; empty where that is not known. */
function inCountry(text: string, countryCode: string | null): string {
  if (countryCode === null) return ''
  const prefix = TRUNK_PREFIXES[countryCode] ?? '0'
  const digits = text.startsWith(prefix) ? text.slice(prefix.length) : text
  return digits.length < MIN_NATIONAL_DIGITS ? '' : countryCode + digits
}
