import { createServer } from 'node:http'
import { Router } from '@koa/router'
import Koa from 'koa'
import type { Logger } from 'pino'
import type { Call } from '../db/call.ts'
import type { DatabaseFigure, Metrics } from '../telemetry/metrics.ts'
import { settledWithin } from '../time/index.ts'
import { listen } from './listen.ts'
import { healthRouter, type Readiness } from './routes/health.ts'

type MetricsServerOptions = {
  host: string
  /** 0: any free port. */
  port: number
  metrics: Metrics
  call: Call
  readiness: Readiness
  log: Logger
}

/** Well within the 10 seconds after which Prometheus stops waiting for a scrape. */
const DATABASE_TIMEOUT_MS = 3000

/**
 * Serves GET /metrics in every role, and the health of processes without the API. It has its own port,
 * because the API's port is public.
 */
export async function startMetricsServer(options: MetricsServerOptions) {
  const { metrics, call, readiness, log } = options
  const router = new Router()
  let reading: Promise<readonly DatabaseFigure[] | null> | undefined
  // One query at a time, however many scrapes arrive while the database is slow.
  const read = () => {
    reading ??= call('metrics', {})
      .catch((error) => {
        log.warn({ err: error }, 'database metrics query failed')
        return null
      })
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.contentType)
    const figuresInTime = settledWithin(DATABASE_TIMEOUT_MS, read(), () => null)
    const [figures, problem] = await Promise.all([figuresInTime, readiness()])
    ctx.body = await metrics.text(figures, problem === null)
  })
  const app = new Koa()
  app.use(router.routes())
  app.use(healthRouter(readiness).routes())
  app.on('error', (error) => log.error({ err: error }, 'metrics response failed'))
  const server = createServer(app.callback())
  const address = await listen(server, options.host, options.port)
  return {
    address,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
