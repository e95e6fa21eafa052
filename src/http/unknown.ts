import type { Context, Middleware } from 'koa'
import { Refusal } from '../errors.ts'
import type { Admit } from './admit.ts'

/**
 * Everything no router took: 404 in the envelope (design section 8). A caller with a key is counted
 * and sees its rate headers as everywhere; one without learns nothing that a 401 would hide.
 */
export function unknownRoute(admit: Admit): Middleware {
  return async (ctx) => {
    try {
      if (ctx.path.startsWith('/v1/')) await admit(ctx as Context, null)
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'unauthorized')) throw error
    }
    throw new Refusal('not_found')
  }
}
