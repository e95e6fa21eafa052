import { hash } from 'node:crypto'
import type { Middleware } from 'koa'
import { setLatest } from './set-latest.ts'
import { createYield } from './yield.ts'

/** Requests start for this time before the event loop goes on. */
const START_MS = 1

/** The number of keys that are remembered; those learned first are forgotten first, and learned again. */
const MAX_KEYS = 10_000

/** The owner of requests whose organisation is not known. */
export const UNKNOWN_OWNER = 'unknown'

/** Path prefixes whose requests have an owner of their own. */
const PATH_OWNER = /^\/(healthz|readyz|providers|dashboard|operator|login)(?:\/|$)/

/**
 * Starts requests round-robin by owner, so that a burst of one organisation does not delay the others. The
 * owner is the organisation of the request's key if that key was admitted lately. All other keys share one
 * owner: otherwise a client could get many places with invented keys. Remembered keys decide nothing but
 * this order; the database admits each request. Sets `ctx.state.owner`, which later steps use as well.
 */
export function fairStart(): Middleware {
  const starts = createYield(START_MS)
  /** Organisations of admitted keys by the hash of the key. */
  const organisations = new Map<string, string>()

  return async (ctx, next) => {
    const [, pathOwner] = PATH_OWNER.exec(ctx.path) ?? []
    // Keys themselves are not kept in memory.
    const key = hash('sha256', ctx.get('Authorization'), 'hex')
    ctx.state.owner = pathOwner ?? organisations.get(key) ?? UNKNOWN_OWNER
    await starts.run(ctx.state.owner, next)
    const { organisationId } = ctx.state
    if (organisationId && organisations.get(key) !== organisationId)
      setLatest(organisations, key, organisationId, MAX_KEYS)
  }
}
