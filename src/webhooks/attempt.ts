import type { Delivery } from '../db/api.gen.ts'
import { encodeId } from '../text/ids.ts'
import { storable } from '../text/storable.ts'
import { OwnFailure } from './failures.ts'
import type { Poster, PostOutcome } from './post.ts'
import { UnopenableSecret } from './secrets.ts'
import { sign } from './sign.ts'

/** What came of an attempt, as api.finish_deliveries takes it. */
export type AttemptResult = Omit<PostOutcome, 'answer'> & {
  response: string | null
  endpoint_id: string
  event_id: string
  attempt: number
  started_at: string
  duration_ms: number
}

export type AttemptOptions = {
  poster: Poster
  /** A signing secret as core.make_secret sealed it -> itself. */
  openSecret(sealed: string): Promise<string>
}

/** The interface has version 1. */
const USER_AGENT = 'Postgram/1'

/**
 * Posts an event to an endpoint once (interface 6.2). null when nothing came of it that says anything of
 * the endpoint: the worker stopped before it had all of the answer, or could make no connection for a
 * lack of ours. Throws when the database could not be asked.
 */
export async function attempt(
  delivery: Delivery,
  { poster, openSecret }: AttemptOptions,
  signal: AbortSignal,
): Promise<AttemptResult | null> {
  const startedAt = performance.now()
  const outcome = await post().catch((error) => {
    if (error instanceof UnopenableSecret) return failed(error.message)
    if (error instanceof OwnFailure) return null
    throw error
  })
  if (outcome === null || (outcome.error !== null && signal.aborted)) return null
  return {
    endpoint_id: delivery.endpointId,
    event_id: delivery.eventId,
    attempt: delivery.attempt,
    started_at: delivery.startedAt.toISOString(),
    duration_ms: Math.round(performance.now() - startedAt),
    status: outcome.status,
    error: outcome.error && storable(outcome.error.slice(0, 500)),
    response: outcome.answer && storable(outcome.answer.slice(0, 1000)),
  }

  async function post(): Promise<PostOutcome> {
    const { url, body, eventId } = delivery
    const secrets = await openAll(delivery.secrets, openSecret)
    // The true time, whatever POSTGRAM_NOW says: receivers compare it with their own clocks.
    const signature = sign(body, secrets, Math.floor(Date.now() / 1000))
    const headers = {
      'Content-Type': 'application/json',
      'Service-Signature': signature,
      'Service-Event-Id': encodeId('evt', eventId),
      'User-Agent': USER_AGENT,
    }
    return poster.post({ url, headers, body }, signal).catch((error) => {
      if (error instanceof OwnFailure) throw error
      return failed(String(error))
    })
  }
}

/** After a rotation one that opens is enough: the other may be why there was one. */
async function openAll(
  sealed: readonly string[],
  open: AttemptOptions['openSecret'],
): Promise<string[]> {
  const opened = await Promise.allSettled(sealed.map(open))
  const errors = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  const secrets = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const trouble = errors.find((error) => !(error instanceof UnopenableSecret))
  if (trouble || secrets.length === 0) throw trouble ?? errors[0]
  return secrets
}

function failed(error: string): PostOutcome {
  return { status: null, error, answer: null }
}
