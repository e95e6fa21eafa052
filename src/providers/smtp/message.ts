import { createPrivateKey } from 'node:crypto'
import type { DKIMOptions, SendMailOptions } from 'nodemailer'
import { encodeWord, foldLines } from 'nodemailer/lib/mime-funcs'
import type { Secrets } from '../../crypto/secrets.ts'
import type { OutgoingEmail } from '../email.ts'
import { messageIdOf } from '../message-id.ts'

/**
 * The headers to sign, if present: those of RFC 6376 5.4.1, and both unsubscribe headers, which RFC 8058
 * requires to be signed.
 */
const SIGNED_HEADERS = [
  ...['From', 'To', 'Cc', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'In-Reply-To', 'References'],
  ...['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding'],
  ...['List-Id', 'List-Help', 'List-Subscribe', 'List-Post', 'List-Owner', 'List-Archive'],
  ...['List-Unsubscribe', 'List-Unsubscribe-Post'],
].join(':')

/** Returns the message without its envelope; bcc and tags are not part of it. */
export function messageOf(email: OutgoingEmail): SendMailOptions {
  const { sender, to, cc, replyTo, html, text, subject } = email
  const custom = (email.headers ?? {}) as Record<string, string>
  const message: SendMailOptions = {
    messageId: `<${messageIdOf(email)}>`,
    from: sender,
    to,
    cc,
    // A list, because nodemailer misreads an object that has a header named "key".
    headers: [...Object.entries(custom), ['Subject', subject] as const].map(([key, value]) => ({
      key,
      value: headerValue(key, value),
    })),
  }
  if (replyTo !== null) message.replyTo = replyTo
  if (text !== null) message.text = withCrlf(text)
  if (html !== null) message.html = withCrlf(html)
  return message
}

/**
 * Returns the DKIM options of the email; null if it has no key. Throws if the key cannot be opened; the error
 * does not contain it.
 */
export function signatureOf(email: OutgoingEmail, secrets: Secrets): DKIMOptions | null {
  const { domain, dkimSelector, dkimPrivateKey } = email
  if (dkimSelector === null || dkimPrivateKey === null) return null
  return {
    domainName: domain,
    keySelector: dkimSelector,
    // Parsed here, because nodemailer sends the message unsigned if the key is malformed.
    privateKey: createPrivateKey(secrets.open(dkimPrivateKey)),
    headerFieldNames: SIGNED_HEADERS,
  }
}

/**
 * Encodes a value (RFC 2047) if folding it at blanks, as nodemailer does, would leave a line that is too
 * long (RFC 5322 2.1.1) or has only blanks (2.2.3).
 */
function headerValue(name: string, value: string) {
  const lines = foldLines(`${name}: ${value}`).split('\r\n')
  if (lines.every((line) => line.length <= 998 && /\S/.test(line))) return value
  return { prepared: true, foldLines: true, value: encodeWord(value, 'Q', 52) }
}

/** Normalises line ends: nodemailer signs a bare CR but sends CRLF for it. */
function withCrlf(body: string): string {
  return body.replace(/\r\n?|\n/g, '\r\n')
}
