import type { Middleware } from 'koa'
import { Refusal } from '../errors.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses unsafe requests that another site made: browsers say where a request comes from in Sec-Fetch-Site, old
 * ones in Origin. A request with neither header does not come from a browser, so it carries no cookie that its
 * sender does not know.
 */
export const sameOrigin: Middleware = (ctx, next) => {
  if (SAFE_METHODS.has(ctx.method)) return next()
  const site = ctx.get('Sec-Fetch-Site')
  const origin = ctx.get('Origin')
  const isOwn = site
    ? site === 'same-origin' || site === 'none'
    : !origin || hostOf(origin) === ctx.host
  if (!isOwn) {
    const message = 'The request comes from another site. Open the page again and repeat it there.'
    throw new Refusal('insufficient_scope', null, { message })
  }
  return next()
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}
