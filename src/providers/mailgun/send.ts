import type { About, OutgoingEmail, SendResult } from '../email.ts'
import { messageIdOf } from '../message-id.ts'
import type { Client } from './client.ts'
import { MailgunError } from './transport.ts'

type Form = Parameters<Client['messages']['create']>[1]

/** Sends an email with our Message-ID, by which Mailgun can be asked about it. */
export async function sendEmail(client: Client, email: OutgoingEmail): Promise<SendResult> {
  try {
    const { id } = await client.messages.create(email.domain, formOf(email))
    if (id) return { outcome: 'sent' }
    const text = 'Mailgun did not confirm the email'
    return { outcome: 'ambiguous', about: 'provider', text }
  } catch (error) {
    if (!(error instanceof MailgunError)) throw error
    const { code, message: text } = error
    return { outcome: outcomeOf(error), about: aboutOf(error), code, text }
  }
}

/**
 * Returns the outcome of a failed request. After a 5xx response Mailgun may have the email. An email is
 * deferred if the refusal concerns the API key or a quota, which the operator can fix.
 */
function outcomeOf({ status, isRefusal, isUnsent }: MailgunError): SendResult['outcome'] {
  if (isRefusal) return 'failed'
  if (isUnsent) return 'deferred'
  return status === null || status >= 500 ? 'ambiguous' : 'deferred'
}

/** API key, quota and rate limit concern the account. A domain that may not send concerns its organisation. */
function aboutOf({ isRefusal, isUnsent, isOfDomain }: MailgunError): About {
  if (isUnsent) return 'connection'
  return isRefusal || isOfDomain ? 'message' : 'provider'
}

/**
 * Returns the form of the request. Text such as %recipient.name% or %unsubscribe_url% stays as it is: Mailgun
 * replaces the first only with recipient-variables or on its mailing lists, the second only if its
 * unsubscribe tracking is on.
 */
function formOf(email: OutgoingEmail): Form {
  const headers = (email.headers ?? {}) as Record<string, string>
  const form: Record<string, string | string[]> = {
    from: email.sender,
    to: email.to,
    cc: email.cc,
    bcc: email.bcc,
    subject: nonEmpty(email.subject),
    'o:tag': email.tags.filter(isAscii),
    'o:tracking': 'no',
    'o:tracking-clicks': 'no',
    'o:tracking-opens': 'no',
    'h:Message-Id': `<${messageIdOf(email)}>`,
  }
  if (email.text !== null) form.text = nonEmpty(email.text)
  if (email.html !== null) form.html = nonEmpty(email.html)
  if (email.replyTo !== null) form['h:Reply-To'] = email.replyTo
  for (const [name, value] of Object.entries(headers)) form[`h:${name}`] = nonEmpty(value)
  return form as Form
}

/** mailgun.js omits empty fields, and Mailgun refuses an email without a body. */
const nonEmpty = (text: string) => text || ' '

/** Mailgun allows only ASCII in tags. It uses them only for its statistics; the database has all tags. */
const isAscii = (tag: string) => /^[\x20-\x7e]+$/.test(tag)
