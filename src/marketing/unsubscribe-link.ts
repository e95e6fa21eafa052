import type { Secrets } from '../crypto/secrets.ts'

/** Whose marketing somebody wants no more of, and the message in which the link stood. */
export type Unsubscription = {
  organisationId: string
  messageId: string
  /** A bare address in lower case. */
  email: string
}

export type UnsubscribeLinks = {
  /** The link that unsubscribes one recipient of one message. */
  url(of: Unsubscription): string
  /** What the token of a link says; undefined when none of our keys signed it. */
  read(token: string): Unsubscription | undefined
}

/** What a signature is for stands before what is signed, so that it is good for nothing else. */
const PURPOSE = Buffer.from('unsubscribe:')
const UUID_BYTES = 16

/** Two UUIDs with an address of 3 to 254 bytes, a dot, an HMAC-SHA256: all of it in base64url. */
const TOKEN = /^([\w-]{47,382})\.([\w-]{43})$/

/**
 * Unsubscribe links (design section 8). A token carries all that it says, signed, so it needs no row
 * to be read, never expires, and outlives a change of SECRET_KEY as long as the older key is listed.
 */
export function createUnsubscribeLinks(options: {
  secrets: Secrets
  publicUrl: string
}): UnsubscribeLinks {
  const { secrets, publicUrl } = options
  return {
    url({ organisationId, messageId, email }) {
      const bytes = Buffer.concat([
        bytesOf(organisationId),
        bytesOf(messageId),
        Buffer.from(email, 'utf8'),
      ])
      const signature = secrets.sign(Buffer.concat([PURPOSE, bytes]))
      return `${publicUrl}/u/${bytes.toString('base64url')}.${signature.toString('base64url')}`
    },
    read(token) {
      const [, said = '', signed = ''] = TOKEN.exec(token) ?? []
      const bytes = fromBase64url(said)
      const signature = fromBase64url(signed)
      if (!bytes || !signature) return undefined
      if (!secrets.isSigned(Buffer.concat([PURPOSE, bytes]), signature)) return undefined
      return {
        organisationId: uuidOf(bytes.subarray(0, UUID_BYTES)),
        messageId: uuidOf(bytes.subarray(UUID_BYTES, 2 * UUID_BYTES)),
        email: bytes.toString('utf8', 2 * UUID_BYTES),
      }
    },
  }
}

function bytesOf(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Undefined unless it is the only way to write these bytes: Node reads much else as base64, too. */
function fromBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined
}
