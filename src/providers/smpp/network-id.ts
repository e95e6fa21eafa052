/** SMPP's limit (5.2.23). Longer ids are cut, in responses and receipts alike. */
const MAX_LENGTH = 64

/** A longer id is not a number, so its spelling is not converted. */
const MAX_DIGITS = 20

const MAX_SPELLINGS = 8

/** Returns an id as it is stored, in lower case; undefined if it is empty. */
export function networkIdOf(text: string | undefined): string | undefined {
  const id = (text ?? '').trim().toLowerCase().slice(0, MAX_LENGTH)
  return id === '' ? undefined : id
}

/**
 * Returns the spellings that the id of a receipt may have had in the submit_sm_resp, the most likely first:
 * the same, or hexadecimal instead of decimal or the reverse, each with or without leading zeros.
 */
export function spellingsOf(id: string): string[] {
  if (!/^[0-9a-f]+$/.test(id) || id.length > MAX_DIGITS) return [id]
  const bare = id.replace(/^0+(?=.)/, '')
  const decimal = BigInt(`0x${id}`).toString()
  const asHex = [bare, decimal, padded(decimal, 10)]
  if (!/^\d+$/.test(id)) return unique([id, ...asHex, hexPadded(bare)])
  const hex = BigInt(id).toString(16)
  return unique([id, bare, hex, hexPadded(hex), padded(hex, 10), ...asHex, padded(bare, 10)])
}

/** 32 and 64 bits have 8 and 16 hexadecimal digits; 32 bits have 10 decimal digits. */
function hexPadded(digits: string): string {
  return padded(digits, digits.length > 8 ? 16 : 8)
}

function padded(digits: string, length: number): string {
  return digits.padStart(length, '0')
}

function unique(spellings: string[]): string[] {
  return [...new Set(spellings)].slice(0, MAX_SPELLINGS)
}
