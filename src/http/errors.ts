import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import { ConnectionLost } from '../db/connection-errors.ts'
import { OutcomeUnknown } from '../db/repeated-call.ts'
import type { Fields } from '../errors.ts'
import { type Code, errorBody, Refusal } from '../errors.ts'
import { summarise } from '../telemetry/summary.ts'
import { BROKEN_OFF } from './body/receive.ts'
import { closeConnection } from './close-connection.ts'
import type { Connections } from './connections.ts'
import { routeOf } from './observe.ts'

/**
 * Renders what later middlewares throw as the error envelope (src/docs/api.md#error-object). An error other than
 * a Refusal is a fault: it is logged and becomes `internal_error`. The dashboard sets `ctx.state.errorPage`, which
 * returns a page instead.
 */
export function renderErrors({ log, publicUrl }: { log: Logger; publicUrl: string }) {
  const faults = summarise<object>((line, requests) =>
    log.error(requests > 1 ? { ...line, requests } : line, 'request failed'),
  )
  const middleware: Middleware = async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = asRefusal(error)
      if (!refusal) {
        const { requestId } = ctx.state
        // The route, not the path, which may contain an address.
        const route = routeOf(ctx)
        const cause = (error ?? {}) as { message?: unknown; code?: unknown }
        const line = { err: error, requestId, method: ctx.method, route }
        faults.note([ctx.method, route, cause.code ?? cause.message].join(' '), line)
      }
      const shown = refusal ?? fault(error, ctx)
      const { code, fields, status, message, retryAfter } = shown
      ctx.state.code = code
      ctx.status = status
      if (retryAfter !== undefined) ctx.set('Retry-After', String(retryAfter))
      const { errorPage } = ctx.state
      if (errorPage) {
        ctx.set('Content-Type', 'text/html; charset=utf-8')
        ctx.body = errorPage(shown)
        return
      }
      if (status === 401) ctx.set('WWW-Authenticate', 'Bearer')
      ctx.set('Content-Type', 'application/json; charset=utf-8')
      ctx.body = envelope(publicUrl, code, fields, message)
    }
  }
  return { middleware, flush: faults.flush }
}

/**
 * Returns a listener for `clientError`: responds to a request that is not HTTP, is incomplete or is late. Node
 * provides only the socket. A connection on which no request has begun is closed without a response.
 */
export function refuseMalformed(publicUrl: string, { responseOn, isIdle }: Connections) {
  return (error: Error & { code?: string }, socket: Socket) => {
    const response = responseOn(socket)
    const isLate = error.code === LATE_HEADERS
    if (!socket.writable || (isLate && isIdle(socket))) {
      socket.destroy()
      return
    }
    if (response?.req.complete) {
      // The error came after a complete request, which may be accepted: it gets its own response.
      if (!response.headersSent) response.setHeader('Connection', 'close')
      return
    }
    const endsInBody = response !== undefined && error.code === 'HPE_INVALID_EOF_STATE'
    closeConnection(socket, bareResponse(isLate ? LATE : endsInBody ? ENDED_EARLY : NOT_HTTP))
  }

  function bareResponse({ code, fields, status, message }: Refusal): string {
    const body = envelope(publicUrl, code, fields, message)
    return (
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nx-request-id: ${randomUUID()}\r\n` +
      'Content-Type: application/json; charset=utf-8\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    )
  }
}

/** Node's error code for a request whose headers did not arrive in time. */
export const LATE_HEADERS = 'ERR_HTTP_REQUEST_TIMEOUT'

const NOT_HTTP = new Refusal('validation_error', { _: ['is not a valid HTTP request'] })
const LATE = new Refusal('invalid_json', null, {
  message: 'The request did not arrive in time. Send it again.',
  status: 408,
})
const ENDED_EARLY = new Refusal('invalid_json', null, { message: BROKEN_OFF })

function envelope(publicUrl: string, code: Code, fields?: Fields, message?: string): string {
  return JSON.stringify({ error: errorBody(publicUrl, code, fields, message) })
}

/**
 * Returns the Refusal for a failure of the service. The default message says that nothing was sent; where that
 * is not certain, the message says what the caller can do.
 */
function fault(error: unknown, { method, headers, state }: Context): Refusal {
  const isUncertain = error instanceof OutcomeUnknown || error instanceof ConnectionLost
  if (!isUncertain || method === 'GET' || method === 'HEAD') return new Refusal('internal_error')
  const advice =
    headers['idempotency-key'] !== undefined
      ? 'Repeat it with the same Idempotency-Key: it takes effect once.'
      : method === 'DELETE'
        ? 'Repeat it: not_found then means that it did.'
        : `It has no Idempotency-Key, so a retry may take effect twice: the operator can look it up by its x-request-id, ${state.requestId}.`
  const message = `The database stopped responding, and it is unknown whether this request took effect. ${advice}`
  return new Refusal('internal_error', null, { message })
}

/** Returns a Refusal as it is. An error of Koa with a status from 400 to 499 becomes `validation_error`. */
function asRefusal(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error
  const status = (error as { status?: unknown } | null)?.status
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new Refusal('validation_error', { _: ['the request cannot be read'] })
  }
  return undefined
}
