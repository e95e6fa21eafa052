import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** Encryption and signatures with SECRET_KEY. Each purpose has its own keys, derived from SECRET_KEY. */
export type Secrets = ReturnType<typeof createSecrets>

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Creates secrets from one or more keys of 32 bytes in base64. The first key seals and signs; the others only open
 * and verify, so that links in old mail stay valid after a rotation.
 */
export function createSecrets(keys: readonly string[]) {
  const masters = keys.map((key) => Buffer.from(key, 'base64'))
  if (masters.some((master) => master.length !== KEY_BYTES)) {
    throw new Error(`a secret key is not ${KEY_BYTES} bytes in base64`)
  }
  const derived = (purpose: string) =>
    masters.map((master) =>
      Buffer.from(hkdfSync('sha256', master, '', `postgram ${purpose}`, KEY_BYTES)),
    )
  const sealing = derived('seal')
  const signing = derived('sign')
  const [sealer] = sealing
  const [signer] = signing
  if (!sealer || !signer) throw new Error('there is no secret key')
  const hmac = (key: Buffer, bytes: Buffer) => createHmac('sha256', key).update(bytes).digest()

  const openWithKey = (sealed: string) => {
    const bytes = Buffer.from(sealed, 'base64')
    // Several base64 texts decode to the same bytes; only the one that seal() writes is valid.
    const isOurForm = bytes.toString('base64') === sealed
    for (const [place, key] of isOurForm ? sealing.entries() : []) {
      try {
        const nonce = bytes.subarray(0, NONCE_BYTES)
        const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
        cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
        const body = cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
        return { text: Buffer.concat([body, cipher.final()]).toString('utf8'), place }
      } catch {
        // Another key sealed it, or none: the next key is tried.
      }
    }
    throw new Error('a secret in the database was not sealed with SECRET_KEY')
  }

  return {
    /** Encrypts a text for the database. */
    seal(text: string): string {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealer, nonce)
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
    },
    /** Decrypts a text. Throws if none of the keys sealed it, or if it was changed. */
    open: (sealed: string) => openWithKey(sealed).text,
    /** Returns the index of the key that sealed a text; null if none did. */
    keyOf(sealed: string): number | null {
      try {
        return openWithKey(sealed).place
      } catch {
        return null
      }
    },
    /** For each key, the first one first, a name that does not reveal it. */
    keyIds: derived('key id').map((id) => id.toString('hex', 0, 8)),
    /** Signs bytes with the first key. */
    sign: (bytes: Buffer) => hmac(signer, bytes),
    /** Returns whether one of the keys made this signature, by a comparison in constant time. */
    isSigned(bytes: Buffer, signature: Buffer): boolean {
      // All keys are compared, so that the time does not depend on which key signed.
      return signing.reduce((isOurs, key) => {
        const expected = hmac(key, bytes)
        const isEqual = expected.length === signature.length && timingSafeEqual(expected, signature)
        return isEqual || isOurs
      }, false)
    },
  }
}
