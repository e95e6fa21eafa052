import { hash } from 'node:crypto'
import type { Middleware } from 'koa'
import { setLatest } from './set-latest.ts'
import { createYield } from './yield.ts'

/** Requests start for this time before the event loop goes on. */
const START_MS = 1

/** The number of keys that are remembered; those learned first are forgotten first, and learned again. */
const MAX_KEYS = 10_000

/** An API key that was admitted lately, by its SHA-256, and what belongs to it. */
export type KnownKey = { key: string; organisationId: string; mode: 'live' | 'test' }

/** The owner of requests whose organisation is not known. */
export const UNKNOWN_OWNER = 'unknown'

/** Path prefixes whose requests have an owner of their own. */
const PATH_OWNER = /^\/(healthz|readyz|providers|dashboard|operator|login)(?:\/|$)/

/**
 * Starts requests round-robin by owner, so that a burst of one organisation does not delay the others. The
 * owner is the organisation of the request's key if that key was admitted lately. All other keys share one
 * owner: otherwise a client could get many places with invented keys. Remembered keys decide nothing but
 * this order; the database admits each request. Sets `ctx.state.owner`, which later steps use as well, and
 * `ctx.state.known`, the KnownKey. Remembers the KnownKey that an admission sets as `ctx.state.admitted`; null
 * means that the database does not know the key.
 */
export function fairStart(): Middleware {
  const starts = createYield(START_MS)
  /** Admitted keys by the hash of their header. */
  const keys = new Map<string, KnownKey>()

  return async (ctx, next) => {
    const [, pathOwner] = PATH_OWNER.exec(ctx.path) ?? []
    // Keys themselves are not kept in memory.
    const header = hash('sha256', ctx.get('Authorization'), 'hex')
    const known = keys.get(header)
    ctx.state.known = known
    ctx.state.owner = pathOwner ?? known?.organisationId ?? UNKNOWN_OWNER
    await starts.run(ctx.state.owner, next)
    const admitted: KnownKey | null | undefined = ctx.state.admitted
    if (admitted === null) keys.delete(header)
    else if (admitted && known?.organisationId !== admitted.organisationId) {
      setLatest(keys, header, admitted, MAX_KEYS)
    }
  }
}
