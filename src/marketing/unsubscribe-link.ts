import type { Secrets } from '../crypto/secrets.ts'
import { uuidOf } from '../text/ids.ts'

/** A recipient who unsubscribes from an organisation, and the message that contained the link. */
export type Unsubscription = {
  organisationId: string
  messageId: string
  /** A bare address in lower case. */
  email: string
}

export type UnsubscribeLinks = ReturnType<typeof createUnsubscribeLinks>

/** A prefix of the signed bytes, so that a signature for another purpose is not valid here. */
const PURPOSE = Buffer.from('unsubscribe:')
const UUID_BYTES = 16

/** Base64url: two UUIDs and an address of 3 to 254 bytes, a dot, an HMAC-SHA256. */
const TOKEN = /^([\w-]{47,382})\.([\w-]{43})$/

/**
 * Creates and reads unsubscribe links. A token contains its signed content, so it needs no row in the
 * database and never expires. It stays valid after a change of SECRET_KEY while the older key is listed.
 */
export function createUnsubscribeLinks({
  secrets,
  publicUrl,
}: {
  secrets: Secrets
  publicUrl: string
}) {
  return {
    /** Returns the link that unsubscribes one recipient of one message. */
    url({ organisationId, messageId, email }: Unsubscription): string {
      const bytes = Buffer.concat([
        bytesOf(organisationId),
        bytesOf(messageId),
        Buffer.from(email, 'utf8'),
      ])
      const signature = secrets.sign(Buffer.concat([PURPOSE, bytes]))
      return `${publicUrl}/u/${bytes.toString('base64url')}.${signature.toString('base64url')}`
    },
    /** Returns the content of a link's token; undefined if none of our keys signed it. */
    read(token: string): Unsubscription | undefined {
      const [, content = '', mac = ''] = TOKEN.exec(token) ?? []
      const bytes = fromBase64url(content)
      const signature = fromBase64url(mac)
      if (!bytes || !signature) return undefined
      if (!secrets.isSigned(Buffer.concat([PURPOSE, bytes]), signature)) return undefined
      return {
        organisationId: uuidOf(bytes.toString('hex', 0, UUID_BYTES)),
        messageId: uuidOf(bytes.toString('hex', UUID_BYTES, 2 * UUID_BYTES)),
        email: bytes.toString('utf8', 2 * UUID_BYTES),
      }
    },
  }
}

function bytesOf(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

/** Returns undefined unless the text is the canonical form of its bytes: Node decodes other text as well. */
function fromBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined
}
