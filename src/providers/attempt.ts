import { setMaxListeners } from 'node:events'
import type { EmailProvider, OutgoingEmail, SendResult } from './email.ts'
import type { OutgoingSms, SmsProvider, SmsSendResult } from './sms.ts'

/** What came of an attempt, as api.finish_messages takes it, hence its names. */
export type Attempt = SendResult & {
  /** Of one that is ambiguous because an earlier hand-over still is: when that one began. */
  ambiguous_since?: Date
}

export type TimeLimit = {
  /** Aborted when the process stops. */
  signal: AbortSignal
  /** How long an answer is waited for. */
  withinMs: number
}

/**
 * Hands an email over. After a hand-over of which nobody knows what became, the provider is asked
 * first; it gets the email once more only when it still does not know it after the time that it may
 * need to learn of what it took (promise 4). Never throws.
 */
export async function attemptSend(
  provider: EmailProvider,
  email: OutgoingEmail,
  patience: TimeLimit,
): Promise<Attempt> {
  if (email.ambiguousSince) {
    const attempt = await lookUp(provider, email, email.ambiguousSince, patience)
    if (attempt) return attempt
  }
  return answerOf(() => provider.send(email), patience).catch(ambiguous)
}

/** Hands an SMS over. Networks cannot be asked what became of an earlier hand-over. Never throws. */
export async function attemptSms(
  provider: SmsProvider,
  sms: OutgoingSms,
  patience: TimeLimit,
): Promise<SmsSendResult> {
  // What is not known here is lost to marketing: so what was not even begun must not count as that.
  if (patience.signal.aborted) return { outcome: 'deferred', text: 'the worker stopped' }
  return answerOf(() => provider.send(sms), patience).catch(ambiguous)
}

/** What became of the earlier hand-over, as far as that can be told; undefined when it never arrived. */
async function lookUp(
  provider: EmailProvider,
  email: OutgoingEmail,
  since: Date,
  patience: TimeLimit,
): Promise<Attempt | undefined> {
  try {
    if (await answerOf(() => provider.lookup(email), patience)) return { outcome: 'sent' }
    if (email.startedAt.getTime() - since.getTime() >= provider.settlesWithinMs) return undefined
    // No `about`: a provider that responds to lookups may still refuse messages.
    const text = 'the provider does not know it yet'
    return { outcome: 'ambiguous', text, ambiguous_since: since }
  } catch (error) {
    return { ...ambiguous(error), ambiguous_since: since }
  }
}

/** What the provider answers, as long as it is worth waiting for. */
async function answerOf<Answer>(
  ask: () => Promise<Answer>,
  { signal, withinMs }: TimeLimit,
): Promise<Answer> {
  const stopped = () => new Stopped('the worker stopped before the provider answered')
  if (signal.aborted) throw stopped()
  const { promise: givenUp, reject: giveUp } = Promise.withResolvers<never>()
  const stopping = () => giveUp(stopped())
  const tooLate = () => giveUp(new Error('the provider did not answer in time'))
  const timer = setTimeout(tooLate, withinMs)
  // One for each hand-over at a time. The worker's abort promise would keep them for good.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', stopping)
  try {
    return await Promise.race([givenUp, ask()])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopping)
  }
}

/** The worker stops; that says nothing of the provider. */
class Stopped extends Error {}

function ambiguous(error: unknown): SendResult {
  const text = error instanceof Error ? error.message : String(error)
  return { outcome: 'ambiguous', ...(error instanceof Stopped ? {} : { about: 'provider' }), text }
}
