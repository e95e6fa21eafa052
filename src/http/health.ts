import { Router } from '@koa/router'
import type { Middleware } from 'koa'
import type { Call } from '../db/call.ts'

/** GET /healthz: the process is up. GET /readyz: the database answers and its code is of this version. */
export function healthRouter({ call, codeSha256 }: { call: Call; codeSha256: string }): Middleware {
  const router = new Router()
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'up' }
  })
  router.get('/readyz', async (ctx) => {
    const database = await call('health', {}).then(
      (sha256) => (sha256 === codeSha256 ? 'ready' : 'the schema is of another version'),
      () => 'the database cannot be reached',
    )
    ctx.status = database === 'ready' ? 200 : 503
    ctx.body = { status: database }
  })
  return router.routes() as unknown as Middleware
}
