import type { Middleware } from 'koa'
import { Refusal } from '../errors.ts'
import type { Admit } from './admit.ts'

/**
 * Responds `not_found` to a request that no route matches. Below /v1 a request with a valid key counts for the
 * rate limit and gets the rate headers; one without a valid key gets `not_found` as well, not `unauthorized`.
 */
export function unknownRoute(admit: Admit): Middleware {
  return async (ctx) => {
    try {
      if (ctx.path.startsWith('/v1/')) await admit(ctx, null)
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'unauthorized')) throw error
    }
    throw new Refusal('not_found')
  }
}
