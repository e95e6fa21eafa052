import type { NodemailerError, SMTPSentMessageInfo } from 'nodemailer'
import type { RefusedRecipient } from '../../db/api.gen.ts'
import { storable } from '../../text/storable.ts'
import type { About, SendResult } from '../email.ts'
import { Unconfirmed } from './pool.ts'

/** The result of one SMTP transaction; `refused` has an entry for each refused recipient. */
export type RelayResult = SendResult & { refused: RefusedRecipient[] }

/** Replies about the login or the session (RFC 4954, RFC 3207), not about the message. */
const SESSION_CODES = new Set([530, 534, 535, 538])

/** Longer replies are cut. */
const MAX_TEXT_LENGTH = 1000

/** Returns the result if the relay took the message for at least one recipient. */
export function confirmed({ rejectedErrors }: SMTPSentMessageInfo): RelayResult {
  return { outcome: 'sent', refused: refusals(rejectedErrors) }
}

/**
 * Returns the result if the transaction failed: `failed` after a 5xx reply to the message or to all
 * recipients, `ambiguous` if content was sent and no reply came, otherwise `deferred`.
 */
export function unconfirmed(thrown: unknown): RelayResult {
  // The pool did not begin the transaction if it throws anything else, such as a timeout in its queue.
  const { cause: error, hasContent } =
    thrown instanceof Unconfirmed ? thrown : new Unconfirmed(thrown as NodemailerError, false)
  const isOfMessage = error.code === 'EENVELOPE' || error.code === 'EMESSAGE'
  const isReply = isOfMessage && /^[45]/.test(error.response ?? '')
  const refused = refusals(error.rejectedErrors)
  if (hasContent && !isReply) {
    const text = 'The relay did not confirm the message.'
    return { outcome: 'ambiguous', about: 'provider', ...codeAndText(error), text, refused }
  }
  const isPermanent =
    isReply && error.permanent === true && !SESSION_CODES.has(error.responseCode ?? 0)
  const about = isReply ? aboutOfReply(error, isPermanent) : aboutWithoutReply(error, isOfMessage)
  return { outcome: isPermanent ? 'failed' : 'deferred', about, ...codeAndText(error), refused }
}

/**
 * A reply to RCPT TO is about the recipient, unless the relay ends the session with it (421). A reply to MAIL
 * FROM, DATA or the content is about the relay if the relay lacks storage (452) or its status code says so
 * (RFC 3463, x.3.x).
 */
function aboutOfReply(
  { command, response = '', responseCode = 0 }: NodemailerError,
  isPermanent: boolean,
): About {
  if (isPermanent) return 'message'
  const isOfSession =
    responseCode === 421 || responseCode === 503 || SESSION_CODES.has(responseCode)
  if (isOfSession) return 'provider'
  const isOfSystem = responseCode === 452 || /^\d{3}[ -]4\.3\./.test(response)
  return isOfSystem && command !== 'RCPT TO' ? 'provider' : 'message'
}

/** A relay that refuses the connection or the login, or takes too long, can be reached. */
function aboutWithoutReply({ code, response }: NodemailerError, isOfMessage: boolean): About {
  if (response || code === 'EAUTH' || code === 'ENOAUTH' || code === 'EABORT') return 'provider'
  // nodemailer itself refused the message.
  return isOfMessage ? 'message' : 'connection'
}

/** Whether a later attempt may succeed. */
export function isTemporary({ code }: RefusedRecipient): boolean {
  return !code?.startsWith('5')
}

function refusals(errors: NodemailerError[] = []): RefusedRecipient[] {
  return errors.map((error) => ({ recipient: error.recipient ?? '', ...codeAndText(error) }))
}

/** Returns the relay's text, or our own if the relay gave none or a sender must not see it. */
function codeAndText(error: NodemailerError): { code: string; text: string } {
  const reply = readReply(error.response ?? '')
  const code = reply.code || (error.originalCode ?? error.code ?? 'ECONNECTION')
  if (error.code === 'EAUTH') return { code, text: 'The relay refuses the login.' }
  if (error.code === 'EABORT') return { code, text: 'The relay took too long.' }
  if (!error.response) return { code, text: `There is no connection to the relay (${code}).` }
  return { code, text: reply.text || 'The relay gives no reason.' }
}

/** Reads `550-5.1.1 No such\n550 5.1.1 mailbox` as code `550 5.1.1` and text `No such mailbox`. */
function readReply(response: string): { code: string; text: string } {
  const [, code = '', status] = /^(\d{3})(?:[ -]([245]\.\d{1,3}\.\d{1,3})\b)?/.exec(response) ?? []
  const text = response
    .replace(/^\d{3}[ -]?(?:[245]\.\d{1,3}\.\d{1,3}\b)?/gm, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return {
    code: status ? `${code} ${status}` : code,
    text: storable(text.slice(0, MAX_TEXT_LENGTH)),
  }
}
