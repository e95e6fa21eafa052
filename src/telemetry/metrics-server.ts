import { createServer } from 'node:http'
import { Router } from '@koa/router'
import Koa, { type Middleware } from 'koa'
import type { Logger } from 'pino'
import { listen } from '../net/listen.ts'
import type { DatabaseFigure, Metrics } from './metrics.ts'

export type MetricsServerOptions = {
  host: string
  /** 0: any that is free. */
  port: number
  metrics: Metrics
  /** Reads the figures that the database knows. */
  readFigures(): Promise<DatabaseFigure[]>
  /** Says what keeps this process from serving; null when nothing does. */
  readiness(): Promise<string | null>
  /** Serves /healthz and /readyz. */
  health: Middleware
  log: Logger
}

/** Well within the 10 seconds in which Prometheus wants an answer. */
const DATABASE_ANSWERS_WITHIN_MS = 3000

/**
 * Serves GET /metrics, in every role, and the health of processes that have no API. Not on the API's
 * port, which is open to the outside.
 */
export async function startMetricsServer(
  options: MetricsServerOptions,
): Promise<{ address: string; stop(): Promise<void> }> {
  const { metrics, readFigures, readiness, health, log } = options
  const router = new Router()
  let reading: Promise<DatabaseFigure[] | null> | undefined
  // One question at a time, also while the database takes its time and one scraper after the other asks.
  const read = () => {
    reading ??= readFigures()
      .catch((error) => {
        log.warn({ err: error }, 'the database did not tell its metrics')
        return null
      })
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  router.get('/metrics', async (ctx) => {
    ctx.set('Content-Type', metrics.contentType)
    const [figures, problem] = await Promise.all([
      orNull(read(), DATABASE_ANSWERS_WITHIN_MS),
      readiness(),
    ])
    ctx.body = await metrics.text(figures, problem === null)
  })
  const app = new Koa()
  app.use(router.routes() as unknown as Koa.Middleware)
  app.use(health)
  app.on('error', (error) => log.error({ err: error }, 'metrics could not be told'))
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

async function orNull<Value>(work: Promise<Value>, limitMs: number): Promise<Value | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), limitMs)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
