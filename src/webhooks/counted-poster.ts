import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { LocalFailure } from './failures.ts'
import type { Poster } from './post.ts'

/** A local failure affects every delivery, so each reason is logged once a minute with a count. */
const LOG_EVERY_MS = 60_000

/**
 * Returns a Poster that counts attempts and logs local failures. It does not count attempts that the
 * worker's stop or a local failure ended.
 */
export function countedPoster(
  poster: Poster,
  { metrics, log }: { metrics: Metrics; log: Logger },
): Poster {
  const localFailures = summarise<string>(
    (reason, deliveries) => log.warn({ reason, deliveries }, 'webhook deliveries deferred'),
    LOG_EVERY_MS,
  )
  return {
    async post(post, signal) {
      const outcome = await poster.post(post, signal).catch((error) => {
        if (error instanceof LocalFailure) localFailures.note(error.message, error.message)
        throw error
      })
      if (outcome.status === null) {
        if (!signal?.aborted) metrics.webhookAttempt('no_response')
      } else metrics.webhookAttempt(outcome.error === null ? 'delivered' : 'refused')
      return outcome
    },
    close: () => poster.close().finally(localFailures.flush),
  }
}
