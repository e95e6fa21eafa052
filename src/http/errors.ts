import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import { type Code, errorBody, Refusal } from '../errors.ts'
import type { Fields } from '../schemas/fields.ts'
import { hangUp } from './hang-up.ts'
import { routeOf } from './observe.ts'

/** The answer that each connection is waiting for. */
const underWay = new WeakMap<Socket, ServerResponse>()

/** Turns what is thrown below into the envelope of interface section 7; what is no Refusal is a bug. */
export function renderErrors({ log, publicUrl }: { log: Logger; publicUrl: string }): Middleware {
  return async (ctx, next) => {
    underWay.set(ctx.req.socket, ctx.res)
    try {
      await next()
    } catch (error) {
      const refusal = asRefusal(error)
      if (!refusal) {
        const { requestId } = ctx.state
        // Not its path, in which an address may be.
        const route = routeOf(ctx as Context)
        log.error({ err: error, requestId, method: ctx.method, route }, 'a request failed')
      }
      const { code, fields, status, words, retryAfter } = refusal ?? new Refusal('internal_error')
      ctx.status = status
      ctx.set('Content-Type', 'application/json; charset=utf-8')
      if (retryAfter !== undefined) ctx.set('Retry-After', String(retryAfter))
      ctx.body = envelope(publicUrl, code, fields, words)
    } finally {
      underWay.delete(ctx.req.socket)
    }
  }
}

/** Answers what is not even HTTP; Node gives us the bare socket. */
export function refuseMalformed(publicUrl: string) {
  return (_error: Error, socket: Socket) => {
    if (!socket.writable) return
    const response = underWay.get(socket)
    if (response?.req.complete) {
      // It came behind a whole request, which may be accepted and must not be answered with this.
      response.setHeader('Connection', 'close')
      return
    }
    const body = envelope(publicUrl, 'validation_error', { _: ['is not a valid HTTP request'] })
    hangUp(
      socket,
      `HTTP/1.1 422 Unprocessable Entity\r\nx-request-id: ${randomUUID()}\r\n` +
        'Content-Type: application/json; charset=utf-8\r\n' +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  }
}

function envelope(publicUrl: string, code: Code, fields?: Fields, words?: string): string {
  return JSON.stringify({ error: errorBody(publicUrl, code, fields, words) })
}

/** Errors of Koa and its router carry a status; below 500 the request was at fault. */
function asRefusal(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error
  const status = (error as { status?: unknown } | null)?.status
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new Refusal('validation_error', { _: ['the request cannot be read'] })
  }
  return undefined
}
