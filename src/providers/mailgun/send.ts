import type { About, OutgoingEmail, SendResult } from '../email.ts'
import { messageIdOf } from '../message-id.ts'
import type { Client } from './client.ts'
import { MailgunError } from './transport.ts'

type Form = Parameters<Client['messages']['create']>[1]

/** Hands an email over, under a Message-ID of ours by which Mailgun can be asked for it. */
export async function sendEmail(client: Client, email: OutgoingEmail): Promise<SendResult> {
  try {
    const { id } = await client.messages.create(email.domain, formOf(email))
    if (id) return { outcome: 'sent' }
    const text = 'Mailgun did not say that it took the email'
    return { outcome: 'ambiguous', about: 'provider', text }
  } catch (error) {
    if (!(error instanceof MailgunError)) throw error
    const { code, message: text } = error
    return { outcome: outcomeOf(error), about: aboutOf(error), code, text }
  }
}

/**
 * What a failure means for the email. Mailgun may have taken what it answers a 5xx to. Other
 * refusals than of this very email, such as of a key or for a spent quota, pass when the operator
 * has seen to them.
 */
function outcomeOf({ status, isRefusal, isUnsent }: MailgunError): SendResult['outcome'] {
  if (isRefusal) return 'failed'
  if (isUnsent) return 'deferred'
  return status === null || status >= 500 ? 'ambiguous' : 'deferred'
}

/** Keys, quotas and rates are those of the account; a domain that may not send is its customer's matter. */
function aboutOf({ isRefusal, isUnsent, isOfDomain }: MailgunError): About {
  if (isUnsent) return 'connection'
  return isRefusal || isOfDomain ? 'message' : 'provider'
}

/**
 * Mailgun puts in variables such as %recipient.name% only with recipient-variables or on a mailing
 * list of its own, and %unsubscribe_url% only where its unsubscribe tracking is on: a text that has
 * them goes out as it is.
 */
function formOf(email: OutgoingEmail): Form {
  const headers = (email.headers ?? {}) as Record<string, string>
  const form: Record<string, string | string[]> = {
    from: email.sender,
    to: email.to,
    cc: email.cc,
    bcc: email.bcc,
    subject: filled(email.subject),
    'o:tag': email.tags.filter(isAscii),
    'o:tracking': 'no',
    'o:tracking-clicks': 'no',
    'o:tracking-opens': 'no',
    'h:Message-Id': `<${messageIdOf(email)}>`,
  }
  if (email.text !== null) form.text = filled(email.text)
  if (email.html !== null) form.html = filled(email.html)
  if (email.replyTo !== null) form['h:Reply-To'] = email.replyTo
  for (const [name, value] of Object.entries(headers)) form[`h:${name}`] = filled(value)
  return form as Form
}

/** mailgun.js leaves out what is empty, and Mailgun refuses an email without a body. */
const filled = (text: string) => text || ' '

/** All that Mailgun allows in a tag. They serve its own statistics only: ours are in the database. */
const isAscii = (tag: string) => /^[\x20-\x7e]+$/.test(tag)
