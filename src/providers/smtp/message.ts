import { createPrivateKey } from 'node:crypto'
import type { DKIMOptions, SendMailOptions } from 'nodemailer'
import { encodeWord, foldLines } from 'nodemailer/lib/mime-funcs'
import type { Secrets } from '../../crypto/secrets.ts'
import type { OutgoingEmail } from '../email.ts'
import { messageIdOf } from '../message-id.ts'

/**
 * What is signed, as far as it is there. RFC 6376 5.4.1, and both unsubscribe headers, without which
 * RFC 8058 does not let them count.
 */
const SIGNED_HEADERS = [
  ...['From', 'To', 'Cc', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'In-Reply-To', 'References'],
  ...['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding'],
  ...['List-Id', 'List-Help', 'List-Subscribe', 'List-Post', 'List-Owner', 'List-Archive'],
  ...['List-Unsubscribe', 'List-Unsubscribe-Post'],
].join(':')

/** The message without its envelope; bcc and tags are no part of it. */
export function messageOf(email: OutgoingEmail): SendMailOptions {
  const { sender, to, cc, replyTo, html, text, subject } = email
  const custom = (email.headers ?? {}) as Record<string, string>
  const message: SendMailOptions = {
    messageId: `<${messageIdOf(email)}>`,
    from: sender,
    to,
    cc,
    // A list: of an object with a header called "key", nodemailer would make the header so named.
    headers: [...Object.entries(custom), ['Subject', subject] as const].map(([key, value]) => ({
      key,
      value: headerValue(key, value),
    })),
  }
  if (replyTo !== null) message.replyTo = replyTo
  if (text !== null) message.text = withLineEnds(text)
  if (html !== null) message.html = withLineEnds(html)
  return message
}

/**
 * How nodemailer is to sign the email; null when it goes out unsigned. Throws when its key cannot be
 * opened, without a word of it.
 */
export function signatureOf(email: OutgoingEmail, secrets: Secrets): DKIMOptions | null {
  const { domain, dkimSelector, dkimPrivateKey } = email
  if (dkimSelector === null || dkimPrivateKey === null) return null
  return {
    domainName: domain,
    keySelector: dkimSelector,
    // With what is no key, nodemailer would send the message unsigned.
    privateKey: createPrivateKey(secrets.open(dkimPrivateKey)),
    headerFieldNames: SIGNED_HEADERS,
  }
}

/**
 * nodemailer folds at blanks. Where that leaves a line too long (RFC 5322 2.1.1) or of nothing but
 * blanks (2.2.3), the value is encoded (RFC 2047).
 */
function headerValue(name: string, value: string) {
  const lines = foldLines(`${name}: ${value}`).split('\r\n')
  if (lines.every((line) => line.length <= 998 && /\S/.test(line))) return value
  return { prepared: true, foldLines: true, value: encodeWord(value, 'Q', 52) }
}

/** nodemailer signs a bare CR and sends CRLF for it. */
function withLineEnds(body: string): string {
  return body.replace(/\r\n?|\n/g, '\r\n')
}
