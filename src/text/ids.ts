/** The digits of public IDs: Crockford's base32. */
export const ID_DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'

/** Does the same as core.encode_id() in SQL, without a database call. */
export function encodeId(prefix: string, uuid: string): string {
  let value = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let digits = ''
  for (let place = 0; place < 26; place++) {
    digits = ID_DIGITS.charAt(Number(value & 31n)) + digits
    value >>= 5n
  }
  return `${prefix}_${digits}`
}

/** Returns the UUID with these 32 hexadecimal digits. */
export function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
