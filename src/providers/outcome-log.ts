import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { encodeId } from '../text/ids.ts'
import type { NamedResult, OnOutcome } from './attempt-task.ts'

/** A provider that is down writes one line a minute for each kind of failure, however many messages wait. */
const FAILURES_EVERY_MS = 60_000

/**
 * Counts and logs attempts. Failed and ambiguous ones are logged at info, the others at debug, since in an
 * outage every message is deferred. Failures of a provider are summed to one warning a minute. The log
 * leaves out the provider's text, which may quote an address; ops.messages has it.
 */
export function createOutcomeLog({
  log,
  metrics,
}: {
  log: Logger
  metrics: Pick<Metrics, 'attemptSend'>
}) {
  const failures = summarise<NamedResult>(
    (result, messages) =>
      log.warn({ provider: result.provider, code: result.code, messages }, eventOf(result)),
    FAILURES_EVERY_MS,
  )

  const noteOf =
    (channel: 'email' | 'sms'): OnOutcome =>
    (id, result) => {
      const { provider, outcome, about } = result
      metrics.attemptSend(channel, provider, outcome)
      // The link to an SMSC logs its own failures. Refusals of the sandbox are simulated.
      const isFailing = about === 'provider' || (about === 'connection' && channel === 'email')
      if (isFailing && provider !== 'sandbox') {
        failures.note(`${provider} ${eventOf(result)}`, result)
      }
      const level = outcome === 'failed' || outcome === 'ambiguous' ? 'info' : 'debug'
      if (!log.isLevelEnabled(level)) return
      const message = encodeId(channel === 'email' ? 'em' : 'sm', id)
      log[level]({ message, provider, outcome }, 'message attempted')
    }

  return {
    noteEmail: noteOf('email'),
    noteSms: noteOf('sms'),
    /** Logs the provider failures that are not logged yet. */
    flush: failures.flush,
  }
}

/** Returns the log message of a failure. A provider may have taken a message that it did not confirm. */
function eventOf({ about, outcome }: NamedResult): string {
  if (about === 'connection') return 'provider cannot be reached'
  return outcome === 'ambiguous'
    ? 'provider does not confirm messages'
    : 'provider refuses messages'
}
