import { setMaxListeners } from 'node:events'
import type { EmailProvider, OutgoingEmail, SendResult } from './email.ts'
import type { OutgoingSms, SmsProvider, SmsSendResult } from './sms.ts'

/** The result of an attempt. The names are those that api.finish_messages takes. */
export type AttemptResult = SendResult & {
  /** If an earlier attempt is still ambiguous: when it began. */
  ambiguous_since?: Date
  /** Of an email in several copies: the recipients whose copies were sent or failed permanently. */
  settled_recipients?: string[]
}

export type TimeLimit = {
  /** Aborted when the process stops. */
  signal: AbortSignal
  /** How long one call to the provider may take. */
  timeoutMs: number
}

/**
 * Attempts to send an email. After an ambiguous attempt it asks the provider first, and sends again
 * only if the provider still does not know the email after `lookupDelayMs`. Never throws.
 */
export async function attemptEmail(
  provider: EmailProvider,
  email: OutgoingEmail,
  timeLimit: TimeLimit,
): Promise<AttemptResult> {
  if (email.ambiguousSince) {
    const earlier = await lookUp(provider, email, email.ambiguousSince, timeLimit)
    if (earlier) return earlier
  }
  return withTimeLimit(() => provider.send(email), timeLimit).catch(ambiguous)
}

/** Attempts to send an SMS. A network cannot be asked about an earlier attempt. Never throws. */
export async function attemptSms(
  provider: SmsProvider,
  sms: OutgoingSms,
  timeLimit: TimeLimit,
): Promise<SmsSendResult> {
  // An ambiguous marketing SMS is never sent again, so an attempt that did not begin is deferred instead.
  if (timeLimit.signal.aborted) return { outcome: 'deferred', text: 'the worker stopped' }
  return withTimeLimit(() => provider.send(sms), timeLimit).catch(ambiguous)
}

/** Returns the result of the earlier attempt, or undefined if it never reached the provider. */
async function lookUp(
  provider: EmailProvider,
  email: OutgoingEmail,
  since: Date,
  timeLimit: TimeLimit,
): Promise<AttemptResult | undefined> {
  try {
    if (await withTimeLimit(() => provider.lookup(email), timeLimit)) return { outcome: 'sent' }
    if (email.startedAt.getTime() - since.getTime() >= provider.lookupDelayMs) return undefined
    // No `about`: a provider that responds to lookups may still refuse messages.
    const text = 'the provider does not know it yet'
    return { outcome: 'ambiguous', text, ambiguous_since: since }
  } catch (error) {
    return { ...ambiguous(error), ambiguous_since: since }
  }
}

/** Calls a provider; throws when the worker stops or the time is over, whichever is first. */
async function withTimeLimit<Response>(
  callProvider: () => Promise<Response>,
  { signal, timeoutMs }: TimeLimit,
): Promise<Response> {
  const stopped = () => new Stopped('the worker stopped before the provider responded')
  if (signal.aborted) throw stopped()
  const { promise: interrupted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(stopped())
  const onTimeout = () => reject(new Error('the provider did not respond in time'))
  const timer = setTimeout(onTimeout, timeoutMs)
  // Each attempt in progress adds a listener. A race with one promise of the worker would keep them for good.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', onAbort)
  try {
    return await Promise.race([interrupted, callProvider()])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

/** The worker stopped, which says nothing about the provider. */
class Stopped extends Error {}

function ambiguous(error: unknown): SendResult {
  const text = error instanceof Error ? error.message : String(error)
  return { outcome: 'ambiguous', ...(error instanceof Stopped ? {} : { about: 'provider' }), text }
}
