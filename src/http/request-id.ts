import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'

/** Gives each request a UUID: the x-request-id of its response and of its log lines. */
export const requestId: Middleware = (ctx, next) => {
  ctx.state.requestId = randomUUID()
  ctx.res.setHeader('x-request-id', ctx.state.requestId)
  return next()
}
