import type { EmailToSend } from '../db/api.gen.ts'
import type { AttemptResult } from '../providers/attempt.ts'
import type { OutgoingEmail } from '../providers/email.ts'
import { copiesOf } from './copies.ts'
import type { UnsubscribeLinks } from './unsubscribe-link.ts'

type CopyResult = { recipient: string; result: AttemptResult }

/** Leaves capacity of the provider to other messages. */
const MAX_IN_PROGRESS = 10

/**
 * Sends the copies of a marketing email, several at a time, and combines their results. Once a copy is
 * deferred or ambiguous, no further copy is begun; the next attempt continues with all recipients that
 * are not settled.
 */
export async function sendCopies(
  email: EmailToSend,
  links: UnsubscribeLinks,
  attempt: (copy: OutgoingEmail) => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const copies = copiesOf(email, links)
  if (email.recipients.length === 1) {
    const { value: only } = copies.next()
    if (only) return attempt(only)
  }

  const results: CopyResult[] = []
  let isStopped = false
  async function lane() {
    while (!isStopped) {
      const { value: copy, done } = copies.next()
      if (done) return
      const result = await attempt(copy)
      results.push({ recipient: copy.recipients[0] ?? '', result })
      if (!isSettled(result)) isStopped = true
    }
  }
  const lanes = Math.min(MAX_IN_PROGRESS, email.recipients.length)
  await Promise.all(Array.from({ length: lanes }, lane))

  const combined = combine(results, email.settledRecipients !== null)
  const wanted = email.recipients.length - (email.settledRecipients?.length ?? 0)
  // An earlier attempt may have sent the copies that this one did not begin, so the next one asks again.
  return combined.outcome === 'deferred' && email.ambiguousSince && results.length < wanted
    ? { ...combined, outcome: 'ambiguous', ambiguous_since: email.ambiguousSince }
    : combined
}

function isSettled({ outcome }: AttemptResult): boolean {
  return outcome === 'sent' || outcome === 'failed'
}

/** An email is sent once all its copies are settled, unless every one failed permanently. */
function combine(results: CopyResult[], hasEarlier: boolean): AttemptResult {
  const settled = results.filter(({ result }) => isSettled(result))
  const failed = settled.filter(({ result }) => result.outcome === 'failed')
  const [first] = failed
  if (first && failed.length === results.length && !hasEarlier) return first.result
  return {
    ...(mostUncertain(results.map(({ result }) => result)) ?? { outcome: 'sent' }),
    settled_recipients: settled.map(({ recipient }) => recipient),
    refused: failed.map(({ recipient, result: { code, text } }) => ({ recipient, code, text })),
  }
}

/**
 * Returns the result that stands for all copies that are not settled: a new ambiguous one, else an older
 * ambiguous one, else a deferred one.
 */
function mostUncertain(results: AttemptResult[]): AttemptResult | undefined {
  const ambiguous = results.filter(({ outcome }) => outcome === 'ambiguous')
  const chosen =
    ambiguous.find(({ ambiguous_since }) => !ambiguous_since) ??
    ambiguous[0] ??
    results.find(({ outcome }) => outcome === 'deferred')
  // A provider that took or refused another copy works.
  const isWorking = results.some(({ outcome, about }) => outcome === 'sent' || about === 'message')
  return chosen && isWorking ? { ...chosen, about: 'message' } : chosen
}
