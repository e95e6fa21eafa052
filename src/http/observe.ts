import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { encodeId } from '../text/ids.ts'

const MESSAGE_ID = /"id": ?"((?:em|sm)_[0-9a-hjkmnp-tv-z]{26})"/g

/**
 * Counts every request, and logs it: at info when an organisation's was refused or failed; at debug when
 * it went well, because at thousands of sends a second a line each would cost a tenth of them, and what
 * was accepted is in the database anyway; and when nobody knows whose it was, so that strangers cannot
 * fill the log. Nor can an organisation: refusals of one kind are summed to a line a second, unless all
 * requests are logged. Nothing that the caller wrote is in the line, neither its path nor its body: both
 * may hold addresses.
 */
export function observe({ log, metrics }: { log: Logger; metrics: Metrics }) {
  const refusals = summarise<object>((line, requests) =>
    log.info(requests > 1 ? { ...line, requests } : line, 'request'),
  )
  const middleware: Middleware = async (ctx, next) => {
    const startedAt = performance.now()
    await next()
    const route = routeOf(ctx as Context)
    const durationMs = performance.now() - startedAt
    metrics.request(ctx.method, route, ctx.status, durationMs / 1000)
    const { requestId, organisationId, code } = ctx.state
    const isRefusal = ctx.status >= 400 && organisationId
    if (!log.isLevelEnabled(isRefusal ? 'info' : 'debug')) return
    const line = {
      requestId,
      method: ctx.method,
      route,
      status: ctx.status,
      ...(code && { code }),
      durationMs: Math.round(durationMs * 10) / 10,
      ...(organisationId && { organisation: encodeId('org', organisationId) }),
      ...messagesIn(ctx.body),
    }
    if (!isRefusal) log.debug(line, 'request')
    else if (log.isLevelEnabled('debug')) log.info(line, 'request')
    else refusals.note([organisationId, ctx.method, route, ctx.status, code].join(' '), line)
  }
  return { middleware, flush: refusals.flush }
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
