/** The digits of ids as callers see them: Crockford's base32. */
export const ID_DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'

/** As core.encode_id() does, without asking the database for each message and event. */
export function encodeId(prefix: string, uuid: string): string {
  let value = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let digits = ''
  for (let place = 0; place < 26; place++) {
    digits = ID_DIGITS.charAt(Number(value & 31n)) + digits
    value >>= 5n
  }
  return `${prefix}_${digits}`
}
