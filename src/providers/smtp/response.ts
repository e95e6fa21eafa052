import type { NodemailerError, SMTPSentMessageInfo } from 'nodemailer'
import { storable } from '../../text/storable.ts'
import type { About, Refused, SendResult } from '../email.ts'
import { Unconfirmed } from './pool.ts'

/** What became of one transaction; `refused` has an entry for each recipient that was not taken. */
export type Answer = SendResult & { refused: Refused[] }

/** Replies that speak of the login or the session (RFC 4954, RFC 3207), not of the message. */
const OF_THE_SESSION = new Set([530, 534, 535, 538])

/** Enough for any reply that people read. */
const MAX_TEXT_LENGTH = 1000

/** The answer of a relay that took the message for some recipients at least. */
export function confirmed({ rejectedErrors }: SMTPSentMessageInfo): Answer {
  return { outcome: 'sent', refused: refusals(rejectedErrors) }
}

/**
 * The answer of a relay that did not: refused for good by a 5xx reply to the message or to all of its
 * recipients, for now by any other reply and when the relay cannot be reached; ambiguous when content
 * was on its way and no reply came.
 */
export function unconfirmed(thrown: unknown): Answer {
  // What is none of the pool's, such as too little time left, was never begun.
  const { cause: error, hasBegun } =
    thrown instanceof Unconfirmed ? thrown : new Unconfirmed(thrown as NodemailerError, false)
  const isOfMessage = error.code === 'EENVELOPE' || error.code === 'EMESSAGE'
  const isReply = isOfMessage && /^[45]/.test(error.response ?? '')
  const refused = refusals(error.rejectedErrors)
  if (hasBegun && !isReply) {
    const text = 'The relay did not say whether it took the message.'
    return { outcome: 'ambiguous', about: 'provider', ...said(error), text, refused }
  }
  const isForGood =
    isReply && error.permanent === true && !OF_THE_SESSION.has(error.responseCode ?? 0)
  const about = isReply ? aboutOfReply(error, isForGood) : aboutWithoutReply(error, isOfMessage)
  return { outcome: isForGood ? 'failed' : 'deferred', about, ...said(error), refused }
}

/**
 * A reply to RCPT is about the recipient unless the relay ends the session with it (421). A reply to
 * MAIL FROM, DATA or the content is about the relay when it lacks storage (452) or says so by its
 * status (RFC 3463, x.3.x).
 */
function aboutOfReply(
  { command, response = '', responseCode = 0 }: NodemailerError,
  isForGood: boolean,
): About {
  if (isForGood) return 'message'
  const isOfSession =
    responseCode === 421 || responseCode === 503 || OF_THE_SESSION.has(responseCode)
  if (isOfSession) return 'provider'
  const isOfSystem = responseCode === 452 || /^\d{3}[ -]4\.3\./.test(response)
  return isOfSystem && command !== 'RCPT TO' ? 'provider' : 'message'
}

/** A relay that refuses the greeting or the login can be reached; so can one that took too long. */
function aboutWithoutReply({ code, response }: NodemailerError, isOfMessage: boolean): About {
  if (response || code === 'EAUTH' || code === 'ENOAUTH' || code === 'EABORT') return 'provider'
  // nodemailer has refused the message itself.
  return isOfMessage ? 'message' : 'connection'
}

/** Whether another attempt can change it. */
export function isForNow({ code }: Refused): boolean {
  return !code?.startsWith('5')
}

function refusals(errors: NodemailerError[] = []): Refused[] {
  return errors.map((error) => ({ recipient: error.recipient ?? '', ...said(error) }))
}

/** The relay's words; words of ours where it has none, or none for the eyes of a sender. */
function said(error: NodemailerError): { code: string; text: string } {
  const reply = readReply(error.response ?? '')
  const code = reply.code || (error.originalCode ?? error.code ?? 'ECONNECTION')
  if (error.code === 'EAUTH') return { code, text: 'The relay refuses our login.' }
  if (error.code === 'EABORT') return { code, text: 'The relay took too long.' }
  if (!error.response) return { code, text: `There is no connection to the relay (${code}).` }
  return { code, text: reply.text || 'The relay gives no reason.' }
}

/** `550-5.1.1 No such\n550 5.1.1 mailbox` is code `550 5.1.1` and text `No such mailbox`. */
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
