import type { Delivery } from '../db/api.gen.ts'
import { encodeId } from '../text/ids.ts'
import { storable } from '../text/storable.ts'
import { processTime, type Time } from '../time/index.ts'
import { LocalFailure } from './failures.ts'
import type { Poster, PostOutcome } from './post.ts'
import { type StoredSecret, UnopenableSecret } from './secrets.ts'
import { sign } from './sign.ts'

/** A finished attempt, in the form that api.finish_deliveries reads. */
export type AttemptResult = {
  endpoint_id: string
  event_id: string
  attempt: number
  started_at: string
  duration_ms: number
  status: number | null
  error: string | null
  answer: string | null
}

export type AttemptOptions = {
  poster: Poster
  /** Returns the signing secret itself. Throws UnopenableSecret. */
  openSecret(stored: StoredSecret): string
  time?: Time
}

/** The number is the version of the API. */
const USER_AGENT = 'Postgram/1'

/**
 * Posts an event to an endpoint once. Returns null when the attempt proves nothing about the endpoint:
 * the worker stopped before the end of the response, or this machine could not make a connection.
 */
export async function attempt(
  delivery: Delivery,
  { poster, openSecret, time = processTime }: AttemptOptions,
  signal: AbortSignal,
): Promise<AttemptResult | null> {
  const startedAt = time.now()
  const outcome = await post().catch((error) => {
    if (error instanceof LocalFailure) return null
    return { status: null, error: messageOf(error), response: null }
  })
  if (outcome === null || (outcome.error !== null && signal.aborted)) return null
  return {
    endpoint_id: delivery.endpointId,
    event_id: delivery.eventId,
    attempt: delivery.attempt,
    started_at: delivery.startedAt.toISOString(),
    duration_ms: Math.round(time.now() - startedAt),
    status: outcome.status,
    error: outcome.error && storable(outcome.error.slice(0, 500)),
    answer: outcome.response && storable(outcome.response.slice(0, 1000)),
  }

  async function post(): Promise<PostOutcome> {
    const { url, body, eventId } = delivery
    // The real time, whatever POSTGRAM_NOW says: receivers compare it with their own clocks.
    const signature = sign(body, openAll(delivery, openSecret), Math.floor(Date.now() / 1000))
    const headers = {
      'Content-Type': 'application/json',
      'Service-Signature': signature,
      'Service-Event-Id': encodeId('evt', eventId),
      'User-Agent': USER_AGENT,
    }
    return poster.post({ url, headers, body }, signal)
  }
}

/** After a rotation one secret that opens is enough: a lost SECRET_KEY may be the reason for it. */
function openAll(
  { secrets, areSealed }: Pick<Delivery, 'secrets' | 'areSealed'>,
  open: AttemptOptions['openSecret'],
): string[] {
  const opened: string[] = []
  const failures: unknown[] = []
  secrets.forEach((text, place) => {
    try {
      opened.push(open({ text, isSealed: areSealed[place] ?? false }))
    } catch (error) {
      failures.push(error)
    }
  })
  if (opened.length === 0) throw failures[0]
  return opened
}

function messageOf(error: unknown): string {
  return error instanceof UnopenableSecret ? error.message : String(error)
}
