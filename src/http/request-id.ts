import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'

/** Names each request: the x-request-id of its response, and of what is logged about it. */
export function requestId(): Middleware {
  return (ctx, next) => {
    ctx.state.requestId = randomUUID()
    ctx.set('x-request-id', ctx.state.requestId)
    return next()
  }
}
