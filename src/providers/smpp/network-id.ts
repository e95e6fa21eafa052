/** Longer ones than SMPP has (5.2.23) are cut, in answers as in receipts. */
const MAX_LENGTH = 64

/** Of what is no number of any network, nothing is converted. */
const MAX_DIGITS = 20

const MAX_SPELLINGS = 8

/** An id as it is kept: in lower case, as the network wrote it; undefined where it wrote none. */
export function networkIdOf(text: string | undefined): string | undefined {
  const id = (text ?? '').trim().toLowerCase().slice(0, MAX_LENGTH)
  return id === '' ? undefined : id
}

/**
 * How the id in a receipt may have been written in the answer to the submit, the likeliest first: the
 * same, or in hex where the receipt has it in decimal, or the other way round, and that with zeros
 * before it or without.
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

/** 32 and 64 bits have 8 and 16 digits in hex; 32 have 10 in decimal. */
function hexPadded(digits: string): string {
  return padded(digits, digits.length > 8 ? 16 : 8)
}

function padded(digits: string, length: number): string {
  return digits.padStart(length, '0')
}

function unique(spellings: string[]): string[] {
  return [...new Set(spellings)].slice(0, MAX_SPELLINGS)
}
