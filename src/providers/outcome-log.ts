import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { encodeId } from '../text/ids.ts'
import type { OnOutcome, Result } from './attempt-task.ts'

/** A provider that is down is one line a minute for each event, however many messages wait for it. */
const FAILURES_EVERY_MS = 60_000

export type OutcomeLog = {
  noteEmail: OnOutcome
  noteSms: OnOutcome
  /** Logs failures of providers that are not logged yet. */
  flush(): void
}

/**
 * Counts attempts and logs them: at info those that failed or are ambiguous, at debug those that are
 * retried, as in an outage these would be all messages; failures of a provider are summed up to a
 * warning a minute. Not the provider's words, which may quote an address; ops.messages has them.
 */
export function createOutcomeLog({
  log,
  metrics,
}: {
  log: Logger
  metrics: Pick<Metrics, 'attemptSend'>
}): OutcomeLog {
  const failures = summarise<Result>(
    (result, messages) =>
      log.warn({ provider: result.provider, code: result.code, messages }, eventOf(result)),
    FAILURES_EVERY_MS,
  )

  function note(channel: 'email' | 'sms', id: string, result: Result): void {
    const { provider, outcome, about } = result
    metrics.attemptSend(channel, provider, outcome)
    // The link to an SMSC logs its own loss. Callers choose the refusals of the sandbox.
    const isFailing = about === 'provider' || (about === 'connection' && channel === 'email')
    if (isFailing && provider !== 'sandbox') {
      failures.note(`${provider} ${eventOf(result)}`, result)
    }
    const level = outcome === 'failed' || outcome === 'ambiguous' ? 'info' : 'debug'
    if (!log.isLevelEnabled(level)) return
    const message = encodeId(channel === 'email' ? 'em' : 'sm', id)
    log[level]({ message, provider, outcome }, 'handed over')
  }

  return {
    noteEmail: (id, result) => note('email', id, result),
    noteSms: (id, result) => note('sms', id, result),
    flush: failures.flush,
  }
}

/** What the log calls a failure. A provider may have taken a message that it did not confirm. */
function eventOf({ about, outcome }: Result): string {
  if (about === 'connection') return 'provider cannot be reached'
  return outcome === 'ambiguous'
    ? 'provider does not confirm messages'
    : 'provider refuses messages'
}
