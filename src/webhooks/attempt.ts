import { createHmac } from 'node:crypto'
import type { Delivery, DeliveryResult } from '../db/api.gen.ts'
import { encodeId } from '../text/ids.ts'
import { storable } from '../text/storable.ts'
import { processTime, type Time } from '../time/index.ts'
import type { PostOutcome } from './exchange.ts'
import { LocalFailure } from './failures.ts'
import type { Poster } from './post.ts'
import { UnopenableSecret } from './secrets.ts'

export type AttemptOptions = {
  poster: Poster
  /** Returns the signing secret in a sealed text. Throws UnopenableSecret. */
  openSecret(sealed: string): string
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
): Promise<DeliveryResult | null> {
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
    started_at: delivery.startedAt,
    duration_ms: Math.round(time.now() - startedAt),
    status: outcome.status,
    error: outcome.error && storable(outcome.error),
    response: outcome.response,
  }

  async function post(): Promise<PostOutcome> {
    const { url, body, eventId } = delivery
    const secrets = secretsOf(delivery, openSecret)
    // The real time, whatever POSTGRAM_NOW says: receivers compare it with their own clocks.
    const signature = sign(body, secrets, Math.floor(Date.now() / 1000))
    const headers = {
      'Content-Type': 'application/json',
      'Service-Signature': signature,
      'Service-Event-Id': encodeId('evt', eventId),
      'User-Agent': USER_AGENT,
    }
    return poster.post({ url, headers, body }, signal)
  }
}

/**
 * Returns the value of Service-Signature for a body sent at this time. It has one v1 for each secret;
 * there are two secrets for a day after a rotation.
 */
export function sign(body: string, secrets: readonly string[], atSeconds: number): string {
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex')
    return `v1=${hmac}`
  })
  return [`t=${atSeconds}`, ...signatures].join(',')
}

/** After a rotation one secret is enough: a lost SECRET_KEY may be the reason for the rotation. */
function secretsOf(
  { plainSecrets, sealedSecrets }: Delivery,
  openSecret: AttemptOptions['openSecret'],
): string[] {
  const secrets = [...plainSecrets]
  const failures: unknown[] = []
  for (const sealed of sealedSecrets) {
    try {
      secrets.push(openSecret(sealed))
    } catch (error) {
      failures.push(error)
    }
  }
  if (secrets.length === 0) throw failures[0]
  return secrets
}

function messageOf(error: unknown): string {
  return error instanceof UnopenableSecret ? error.message : String(error)
}
