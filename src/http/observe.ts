import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import { encodeId } from '../ids.ts'
import type { Metrics } from '../metrics.ts'

const MESSAGE_ID = /"id": ?"((?:em|sm)_[0-9a-hjkmnp-tv-z]{26})"/g

/**
 * Counts every request, and leaves a line of it in the log: at info when an organisation's was refused
 * or failed; at debug when it went well, because at thousands of sends a second a line each would cost a
 * tenth of them, and what was accepted is in the database anyway; and when nobody knows whose it was, so
 * that strangers cannot fill the log. Nothing that the caller wrote is in the line,
 * neither its path nor its body: both may hold addresses.
 */
export function observe({ log, metrics }: { log: Logger; metrics: Metrics }): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now()
    await next()
    const route = routeOf(ctx as Context)
    const durationMs = performance.now() - startedAt
    metrics.request(ctx.method, route, ctx.status, durationMs / 1000)
    const { requestId, organisationId } = ctx.state
    const level = ctx.status >= 400 && organisationId ? 'info' : 'debug'
    if (!log.isLevelEnabled(level)) return
    log[level](
      {
        requestId,
        method: ctx.method,
        route,
        status: ctx.status,
        durationMs: Math.round(durationMs * 10) / 10,
        ...(organisationId && { organisation: encodeId('org', organisationId) }),
        ...messagesIn(ctx.body),
      },
      'request',
    )
  }
}

/** The route that took a request, as it is declared: `/v1/emails/:id`. */
export function routeOf(ctx: Context): string {
  const route: unknown = ctx._matchedRoute
  return typeof route === 'string' ? route : 'none'
}

/** The message that an answer is about, or the first of several and how many there are. */
function messagesIn(body: unknown): { message?: string; messages?: number } {
  if (typeof body !== 'string') return {}
  const ids = [...body.matchAll(MESSAGE_ID)].map(([, id = '']) => id)
  const [message] = ids
  if (!message) return {}
  return ids.length > 1 ? { message, messages: ids.length } : { message }
}
