import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import { encodeId } from '../text/ids.ts'

const MESSAGE_ID = /"id": ?"((?:em|sm)_[0-9a-hjkmnp-tv-z]{26})"/g

/**
 * Counts and logs every request.
 *
 * - Refused and failed requests of organisations are logged at info: refusals of one kind are one line a
 *   second, so that an organisation cannot fill the log, but single lines if the log level is debug.
 * - Successful requests are logged at debug: a line for each send would take a tenth of the throughput, and
 *   the database has every accepted message.
 * - Requests without a known organisation are logged at debug, so that strangers cannot fill the log.
 *
 * A line contains neither path nor body: both may contain addresses.
 */
export function observe({ log, metrics }: { log: Logger; metrics: Metrics }) {
  const refusals = summarise<object>((line, requests) =>
    log.info(requests > 1 ? { ...line, requests } : line, 'request'),
  )
  const middleware: Middleware = async (ctx, next) => {
    const startedAt = performance.now()
    await next()
    const route = routeOf(ctx)
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

/** Returns the pattern of the route that matched a request, such as `/v1/emails/:id`, or `none`. */
export function routeOf(ctx: Context): string {
  const route: unknown = ctx._matchedRoute
  return typeof route === 'string' ? route : 'none'
}

/** Returns the ID of the message in a response, or the first ID of several and their number. */
function messagesIn(body: unknown): { message?: string; messages?: number } {
  if (typeof body !== 'string') return {}
  const ids = [...body.matchAll(MESSAGE_ID)].map(([, id = '']) => id)
  const [message] = ids
  if (!message) return {}
  return ids.length > 1 ? { message, messages: ids.length } : { message }
}
