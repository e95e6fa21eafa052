import type { Metrics } from '../metrics.ts'
import type { Poster } from './post.ts'

/** The same Poster, whose posts are counted; not those that the worker's stop cut off. */
export function countedPoster(poster: Poster, metrics: Metrics): Poster {
  return {
    ...poster,
    async post(post, signal) {
      const outcome = await poster.post(post, signal)
      if (outcome.status === null && signal?.aborted) return outcome
      const isRefused = outcome.error !== null
      metrics.webhookAttempt(
        outcome.status === null ? 'unanswered' : isRefused ? 'refused' : 'delivered',
      )
      return outcome
    },
  }
}
