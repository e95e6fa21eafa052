import * as v from 'valibot'
import { checkedBy, isObject, line, reportAll, reportPrototype } from './fields.ts'
import { tooMany } from './limits.ts'

export const MAX_HEADERS = 50
// RFC 5322, 2.1.1 recommends lines of at most 78 characters; the first has the name and ": ".
const MAX_HEADER_NAME_LENGTH = 76
const MAX_HEADER_VALUE_LENGTH = 998
// Mailgun accepts 16 KB besides bodies and recipients; the remaining 4 KB are for tags and the headers that the
// service sets.
const MAX_HEADERS_BYTES = 12 * 1024

// An RFC 5322 field name may have any printable character; an RFC 9110 token passes every parser.
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** Headers that the service or mail servers set (RFC 5321, 4.4; RFC 5322, 3.6; RFC 7208, 8601, 8617). */
const SERVICE_HEADER = anyOf(
  ...['From', 'Sender', 'To', 'Cc', 'Bcc', 'Reply-To', 'Subject', 'Date', 'Message-ID'],
  ...['MIME-Version', 'Content-*', 'DKIM-Signature', 'DomainKey-Signature', 'ARC-*'],
  ...['Authentication-Results', 'Return-Path', 'Received*', 'Resent-*', 'Delivered-To'],
  ...['X-Delivered-To', 'X-Original-To', 'Apparently-To', 'Envelope-*', 'X-Envelope-*'],
)

/**
 * Headers by which SMTP relays are controlled, such as tracking, templates, sender identity or sandbox mode; only
 * the operator decides these. Each entry names the documentation of its provider.
 */
const CONTROL_HEADER = anyOf(
  // Mailgun: documentation.mailgun.com, "Passing sending options" of "Sending via SMTP"
  'X-Mailgun-*',
  // Mandrill: mailchimp.com/developer/transactional/docs/smtp-integration
  ...['X-MC-*', 'X-Mandrill-*'],
  // Amazon SES: docs.aws.amazon.com/ses, "Sending authorization" and "Event publishing"
  'X-SES-*',
  // Postmark: postmarkapp.com/developer/user-guide/send-email-with-smtp
  ...['X-PM-*', 'X-Postmark-*'],
  // Mailjet: dev.mailjet.com/smtp-relay/custom-headers
  ...['X-MJ-*', 'X-Mailjet-*'],
  // SendGrid: twilio.com/docs/sendgrid/for-developers/sending-email/building-an-x-smtpapi-header
  ...['X-SMTPAPI', 'X-SG-*'],
  // SparkPost: developers.sparkpost.com/api/smtp
  ...['X-MSYS-*', 'X-Sparkpost*'],
  // Brevo: developers.brevo.com/docs, "Using sandbox mode to send an email"
  ...['X-Sib-*', 'X-Mailin-*'],
  // Elastic Email: elasticemail.com/developers/api-documentation, "SMTP headers"
  'X-ElasticEmail-*',
  // Mailtrap: docs.mailtrap.io, "SMTP integration"
  'X-MT-*',
  // Sendmachine: developers.sendmachine.com/smtp_headers.html
  'X-SM-*',
  // Alibaba Direct Mail: alibabacloud.com/help/en/direct-mail, "Track email open data by tag"
  'X-AliDM-*',
  // MailerQ: mailerq.com/documentation/5.10/mime-headers; SMTPeter: its "SMTP headers"
  ...['X-MQ-*', 'X-SMTPeter-*'],
  // PowerMTA: User's Guide, "Message headers"
  ...['X-Virtual-MTA', 'X-Job', 'X-EnvID', 'X-DKIM-Options'],
  // GreenArrow: greenarrowemail.com/docs, "X-GreenArrow headers"
  'X-GreenArrow-*',
  // Exchange: learn.microsoft.com/exchange, "Header firewall"
  'X-MS-Exchange-*',
)

/** Headers that the service sets in marketing email (RFC 8058). */
export const UNSUBSCRIBE_HEADER = /^list-unsubscribe(?:-post)?$/i

const headerValue = line(MAX_HEADER_VALUE_LENGTH, { tabs: true })

/** Custom headers by name, unchanged. */
export const headers = checkedBy(
  v.record(v.string(), v.string()),
  (value, report): Record<string, string> | undefined => {
    if (!isObject(value)) {
      report('must be an object')
      return
    }
    const names = Object.keys(value)
    if (names.length > MAX_HEADERS) report(tooMany(MAX_HEADERS, 'headers', names.length))
    const seen = new Set<string>()
    let bytes = 0
    for (const name of names.slice(0, MAX_HEADERS)) {
      const lowered = name.toLowerCase()
      if (!HEADER_NAME.test(name)) report('must have a header name without spaces or colons', name)
      if (name.length > MAX_HEADER_NAME_LENGTH) {
        report(`must have a name of at most ${MAX_HEADER_NAME_LENGTH} characters`, name)
      }
      if (SERVICE_HEADER.test(name)) report('is set by the service and cannot be overridden', name)
      if (CONTROL_HEADER.test(name)) report('controls email providers and cannot be set', name)
      if (seen.has(lowered)) report('is given twice in different case', name)
      reportPrototype(name, report)
      seen.add(lowered)
      const header = value[name]
      reportAll(headerValue, header, report, name)
      bytes += Buffer.byteLength(name)
      if (typeof header === 'string') bytes += Buffer.byteLength(header)
    }
    if (bytes > MAX_HEADERS_BYTES)
      report(`must be at most ${MAX_HEADERS_BYTES} bytes together but has ${bytes}`)
    return value as Record<string, string>
  },
)

/** Matches these names in any case; a star matches any ending. */
function anyOf(...names: string[]): RegExp {
  return new RegExp(`^(?:${names.map((name) => name.replace('*', '.*')).join('|')})$`, 'i')
}
