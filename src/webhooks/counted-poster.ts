import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { OwnFailure } from './failures.ts'
import type { Poster } from './post.ts'

/** All deliveries meet a lack of ours, so each reason is logged once a minute, with the count. */
const LACKS_EVERY_MS = 60_000

/**
 * The same Poster, whose posts are counted; not those that the worker's stop cut off, nor those that came
 * to nothing for a lack of ours, of which the log tells.
 */
export function countedPoster(
  poster: Poster,
  { metrics, log }: { metrics: Metrics; log: Logger },
): Poster {
  const lacks = summarise<string>(
    (reason, deliveries) =>
      log.warn({ reason, deliveries }, 'deliveries to webhook endpoints are put off'),
    LACKS_EVERY_MS,
  )
  return {
    ...poster,
    async post(post, signal) {
      const outcome = await poster.post(post, signal).catch((error) => {
        if (error instanceof OwnFailure) lacks.note(error.message, error.message)
        throw error
      })
      if (outcome.status === null && signal?.aborted) return outcome
      const isRefused = outcome.error !== null
      metrics.webhookAttempt(
        outcome.status === null ? 'unanswered' : isRefused ? 'refused' : 'delivered',
      )
      return outcome
    },
    close: () => poster.close().finally(lacks.flush),
  }
}
