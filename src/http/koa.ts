import Koa, { type Context } from 'koa'

type Run = (ctx: Context) => Promise<void>

/** Missing in the types of Koa. */
const handleRequest: (this: Koa, ctx: Context, run: Run) => Promise<void> = (
  Koa.prototype as never as { handleRequest: typeof handleRequest }
).handleRequest

/**
 * Koa that ends a successful response with a text itself. For every response Koa adds five listeners and an
 * AsyncResource, to report errors of the socket and to end streams: 7 of 87 µs of a send. server.ts reports these
 * errors for each connection instead.
 */
export class LeanKoa extends Koa {
  async handleRequest(ctx: Context, run: Run): Promise<void> {
    const { res } = ctx
    res.statusCode = 404
    try {
      await run(ctx)
    } catch (error) {
      ctx.onerror(error as Error)
      return
    }
    const { body, status } = ctx
    if (status === 200 && typeof body === 'string' && ctx.method !== 'HEAD' && ctx.writable) {
      res.end(body)
      return
    }
    await handleRequest.call(this, ctx, async () => {
      // Koa has set it to 404 again.
      res.statusCode = status
    })
  }
}
