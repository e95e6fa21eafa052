import type { EmailToSend } from '../db/api.gen.ts'
import type { OutgoingEmail } from '../providers/email.ts'
import { escapeHtml } from '../text/html.ts'
import type { UnsubscribeLinks } from './unsubscribe-link.ts'

/** As core.template_value() leaves it, or as it came: blanks inside the braces are allowed. */
const PLACEHOLDER = /\{\{\s*unsubscribe_url\s*\}\}/g

/** A link is 25 times as long as a placeholder, and 2 MB of those must not become 50. */
const MAX_LINKS = 100

/**
 * What an email goes out as. A transactional one goes out whole and as it was written. Marketing is
 * one copy for each recipient that has none yet, with an unsubscribe link of its own in its headers
 * (RFC 8058) and in place of {{unsubscribe_url}}. Each copy is made when it is asked for, as fifty
 * bodies of 2 MB at once would be too much.
 */
export function* copiesOf(email: EmailToSend, links: UnsubscribeLinks): Generator<OutgoingEmail> {
  if (email.class === 'transactional') {
    yield { ...email, copy: null }
    return
  }
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

/** The bare address of a header form, in lower case, as in EmailToSend.recipients. */
function addressOf(headerForm: string): string {
  return (/<([^<>]*)>$/.exec(headerForm)?.[1] ?? headerForm).toLowerCase()
}
