import { hash } from 'node:crypto'
import type { Context, Middleware } from 'koa'
import { createYield } from './yield.ts'

/** Requests start for so long before the event loop receives more. */
const TURN_MS = 1

/** How many keys are remembered; those of the longest ago are forgotten first. */
const MAX_KEYS = 10_000

/** The party of requests whose organisation is not known. */
export const OTHERS = 'others'

/** Paths that have a place of their own in the order. */
const OWN_PLACE = /^\/(healthz|readyz|providers)(?:\/|$)/

/**
 * Starts the requests of organisations in turn, however many of one arrive at a time. All requests whose key
 * was not admitted lately share one place in the order, or a client could take many with invented keys.
 * The order is all that depends on a remembered key: each request is admitted by the database. Sets
 * `ctx.state.party`, by which later steps take turns.
 */
export function fairStart(): Middleware {
  const turns = createYield(TURN_MS)
  /** The organisations of admitted keys, by the key's hash; the key of the latest request comes last. */
  const organisations = new Map<string, string>()

  function remember(key: string, organisationId: string) {
    organisations.delete(key)
    organisations.set(key, organisationId)
    const [oldest] = organisations.keys()
    if (organisations.size > MAX_KEYS && oldest !== undefined) organisations.delete(oldest)
  }

  return async (ctx, next) => {
    const [, place] = OWN_PLACE.exec(ctx.path) ?? []
    const key = keyOf(ctx as Context)
    ctx.state.party = place ?? organisations.get(key) ?? OTHERS
    await turns.run(ctx.state.party, next)
    const { organisationId } = ctx.state
    if (organisationId) remember(key, organisationId)
  }
}

/** The hash of a request's key: keys are not kept in memory. */
function keyOf(ctx: Context): string {
  return hash('sha256', ctx.get('Authorization'), 'hex')
}
