import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** What SECRET_KEY is good for. Each purpose has keys of its own, derived from it. */
export type Secrets = {
  /** Encrypt a text for keeping in the database. */
  seal(text: string): string
  /** The text that was sealed; throws when no key of ours sealed it, or it was changed. */
  open(sealed: string): string
  /** The same, sealed by the first key; null when that has sealed it already. Throws as open does. */
  reseal(sealed: string): string | null
  /** Which key sealed a text: 0 for the first; null when none of ours did. */
  keyOf(sealed: string): number | null
  /** For each key, the first one first, a name that does not reveal it. */
  keyIds: readonly string[]
  /** A signature over some bytes, by the first key. */
  sign(bytes: Buffer): Buffer
  /** Whether one of our keys made this signature, compared in constant time. */
  isSigned(bytes: Buffer, signature: Buffer): boolean
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Secrets under one or more keys of 32 bytes in base64. The first is used; what older ones sealed or
 * signed stays good, so that a key can be changed while links in old mail go on working.
 */
export function createSecrets(keys: readonly string[]): Secrets {
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

  const seal = (text: string) => {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', sealer, nonce)
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
  }

  const openWithKey = (sealed: string) => {
    const bytes = Buffer.from(sealed, 'base64')
    // Several texts decode to the same bytes, of which we have written one.
    const isOurForm = bytes.toString('base64') === sealed
    for (const [place, key] of isOurForm ? sealing.entries() : []) {
      try {
        const nonce = bytes.subarray(0, NONCE_BYTES)
        const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
        cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
        const body = cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
        return { text: Buffer.concat([body, cipher.final()]).toString('utf8'), place }
      } catch {
        // Sealed with another key, or not by us: the next key, or the error below, tells.
      }
    }
    throw new Error('a secret in the database was not sealed with SECRET_KEY')
  }

  return {
    seal,
    open: (sealed) => openWithKey(sealed).text,
    reseal(sealed) {
      const { text, place } = openWithKey(sealed)
      return place === 0 ? null : seal(text)
    },
    keyOf(sealed) {
      try {
        return openWithKey(sealed).place
      } catch {
        return null
      }
    },
    keyIds: derived('key id').map((id) => id.toString('hex', 0, 8)),
    sign: (bytes) => hmac(signer, bytes),
    isSigned(bytes, signature) {
      // All keys are asked, so that the time taken does not tell which one it was.
      return signing.reduce((isOurs, key) => {
        const expected = hmac(key, bytes)
        const isEqual = expected.length === signature.length && timingSafeEqual(expected, signature)
        return isEqual || isOurs
      }, false)
    },
  }
}
