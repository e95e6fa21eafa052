import type { EmailToSend } from '../db/api.gen.ts'
import type { Attempt } from '../providers/attempt.ts'
import type { OutgoingEmail } from '../providers/email.ts'
import { copiesOf } from './copies.ts'
import type { UnsubscribeLinks } from './unsubscribe-link.ts'

/** What came of an attempt at a message, as api.finish_messages takes it. */
export type Outcome = Attempt & {
  /** Of several copies: the recipients of those that were sent or refused for good. */
  settled_recipients?: string[]
}

type Result = { recipient: string; copy: number | null; attempt: Attempt }

/** One message must not take all that the provider does at a time. */
const AT_A_TIME = 10

/**
 * Hands over all that an email goes out as, several copies at a time, and makes one outcome of what
 * comes of them. After a copy that is put off, or of which nobody knows what became, no further one
 * is begun: the next attempt goes on with all that are not settled.
 */
export async function sendCopies(
  email: EmailToSend,
  links: UnsubscribeLinks,
  attemptSend: (copy: OutgoingEmail) => Promise<Attempt>,
): Promise<Outcome> {
  const copies = copiesOf(email, links)
  const results: Result[] = []
  async function lane() {
    // All lanes take from one generator, and the one that returns closes it for the others too.
    for (const outgoing of copies) {
      const { copy, recipients } = outgoing
      const attempt = await attemptSend(outgoing)
      results.push({ recipient: recipients[0] ?? '', copy, attempt })
      if (!isSettled(attempt)) return
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, email.recipients.length) }, lane))
  const [first] = results
  if (first?.copy === null) return first.attempt
  const outcome = together(results, email.settledRecipients !== null)
  const wanted = email.recipients.length - (email.settledRecipients?.length ?? 0)
  // Of copies that were not begun this time, the earlier hand-over is still to be asked after.
  return outcome.outcome === 'deferred' && email.ambiguousSince && results.length < wanted
    ? { ...outcome, outcome: 'ambiguous', ambiguous_since: email.ambiguousSince }
    : outcome
}

function isSettled({ outcome }: Attempt): boolean {
  return outcome === 'sent' || outcome === 'failed'
}

/** An email is sent once all of its copies are settled, unless every one was refused for good. */
function together(results: Result[], hasEarlier: boolean): Outcome {
  const settled = results.filter(({ attempt }) => isSettled(attempt))
  const refused = settled.filter(({ attempt }) => attempt.outcome === 'failed')
  const [first] = refused
  if (first && refused.length === results.length && !hasEarlier) return first.attempt
  return {
    ...(unsettled(results) ?? { outcome: 'sent' }),
    settled_recipients: settled.map(({ recipient }) => recipient),
    refused: refused.map(({ recipient, attempt: { code, text } }) => ({ recipient, code, text })),
  }
}

/** The attempt that speaks for those that are not settled: what may have arrived comes first. */
function unsettled(results: Result[]): Attempt | undefined {
  const attempts = results.map(({ attempt }) => attempt)
  const ambiguous = attempts.filter(({ outcome }) => outcome === 'ambiguous')
  const speaker =
    ambiguous.find(({ ambiguous_since }) => !ambiguous_since) ??
    ambiguous[0] ??
    attempts.find(({ outcome }) => outcome === 'deferred')
  // A provider that takes other copies of the email works.
  const isTaking = attempts.some(({ outcome, about }) => outcome === 'sent' || about === 'message')
  return speaker && isTaking ? { ...speaker, about: 'message' } : speaker
}
