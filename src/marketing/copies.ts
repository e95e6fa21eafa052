import type { EmailToSend } from '../db/api.gen.ts'
import type { OutgoingEmail } from '../providers/email.ts'
import { escapeHtml } from '../text/html.ts'
import type { UnsubscribeLinks } from './unsubscribe-link.ts'

/** Blanks inside the braces are allowed; core.template_value() may remove them. */
const PLACEHOLDER = /\{\{\s*unsubscribe_url\s*\}\}/g

/** A link is 25 times as long as a placeholder: without a limit 2 MB of placeholders would become 50 MB. */
const MAX_LINKS = 100

/**
 * Yields a copy of a marketing email for each recipient that is not settled yet. Each copy has its own
 * unsubscribe link in the headers (RFC 8058) and in place of {{unsubscribe_url}}. A generator makes one
 * copy at a time, because fifty bodies of 2 MB would need too much memory.
 */
export function* copiesOf(
  email: EmailToSend,
  links: UnsubscribeLinks,
): Generator<OutgoingEmail, undefined> {
  const seen = new Set<string>()
  for (const to of email.to) {
    const recipient = addressOf(to)
    if (seen.has(recipient)) continue
    seen.add(recipient)
    if (email.settledRecipients?.includes(recipient)) continue
    const url = links.url({
      organisationId: email.organisationId,
      messageId: email.id,
      email: recipient,
    })
    yield {
      ...email,
      copy: email.recipients.length === 1 ? null : seen.size,
      to: [to],
      recipients: [recipient],
      html: withLinks(email.html, escapeHtml(url)),
      text: withLinks(email.text, url),
      headers: {
        ...(email.headers as Record<string, string> | null),
        'List-Unsubscribe': `<${url}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    }
  }
}

function withLinks(body: string | null, link: string): string | null {
  let left = MAX_LINKS
  return body?.replace(PLACEHOLDER, (placeholder) => (left-- > 0 ? link : placeholder)) ?? null
}

/** Returns the bare address of a header value in lower case, as in EmailToSend.recipients. */
function addressOf(headerValue: string): string {
  return (/<([^<>]*)>$/.exec(headerValue)?.[1] ?? headerValue).toLowerCase()
}
