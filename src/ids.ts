const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** A UUID as callers see it, as core.encode_id() makes it, without asking the database. */
export function encodeId(prefix: string, uuid: string): string {
  let value = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let digits = ''
  for (let place = 0; place < 26; place++) {
    digits = ALPHABET.charAt(Number(value & 31n)) + digits
    value >>= 5n
  }
  return `${prefix}_${digits}`
}

/** The UUID that 26 such digits stand for. */
export function decodeDigits(digits: string): string {
  let value = 0n
  for (const digit of digits) value = (value << 5n) | BigInt(ALPHABET.indexOf(digit))
  const hex = value.toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
