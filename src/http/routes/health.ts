import { Router } from '@koa/router'

/** Returns why this process cannot serve requests, or null if it can. */
export type Readiness = () => Promise<string | null>

/** GET /healthz: the process is up. GET /readyz: the database responds and has the schema of this version. */
export function healthRouter(readiness: Readiness): Router {
  const router = new Router()
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'up' }
  })
  router.get('/readyz', async (ctx) => {
    const problem = await readiness()
    ctx.status = problem === null ? 200 : 503
    ctx.body = { status: problem ?? 'ready' }
  })
  return router
}
