import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { CallPair } from '../db/call-pair.ts'
import type { Registry } from '../domains/registry.ts'
import { createUnsubscribeLinks } from '../marketing/unsubscribe-link.ts'
import type { EmailProvider } from '../providers/email.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { admission } from './admit.ts'
import { createBodies } from './body/index.ts'
import type { PostOptions } from './body/post-body.ts'
import { createPostReader } from './body/post-reader.ts'
import { docsRouter } from './docs/router.ts'
import { renderErrors } from './errors.ts'
import { fairStart } from './fair-start.ts'
import { LeanKoa } from './koa.ts'
import type { HttpLimits } from './limits.ts'
import { mount } from './mount.ts'
import { observe } from './observe.ts'
import { plainPath } from './plain-path.ts'
import { requestId } from './request-id.ts'
import { callbacksRouter } from './routes/callbacks.ts'
import { domainEndpoints } from './routes/domains.ts'
import { healthRouter, type Readiness } from './routes/health.ts'
import { messageEndpoints } from './routes/messages.ts'
import { openapiRouter } from './routes/openapi.ts'
import { suppressionEndpoints } from './routes/suppressions.ts'
import { unsubscribeRouter } from './routes/unsubscribe.ts'
import { usageEndpoint } from './routes/usage.ts'
import { unknownRoute } from './unknown.ts'

export type AppOptions = PostOptions & {
  call: Call
  callPair: CallPair
  log: Logger
  registry: Registry
  secrets: Secrets
  readiness: Readiness
  metrics: Metrics
  emailProvider: EmailProvider
  limits: HttpLimits
  /** Aborted when the server stops. */
  stopping: AbortSignal
  /** Creates the middleware of the dashboard, which passes requests for other paths on. */
  createDashboard(tools: {
    publicUrl: string
    readBody(ctx: Context, maxBytes: number, owner?: string): Promise<Buffer>
    stopping: AbortSignal
  }): Middleware
}

/** Error codes of connections that the client has closed or reset. */
const CLIENT_GONE = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Creates the Koa app. A request passes the middlewares in the order of the `app.use` calls. */
export function createApp(options: AppOptions) {
  const { call, log, publicUrl, hasSandboxMessages, hasSandboxSms, secrets, metrics, stopping } =
    options
  const app = new LeanKoa()
  const admit = admission(call)
  const emails = messageEndpoints('email', options)
  const sms = messageEndpoints('sms', options)
  const bodies = createBodies(options.limits)
  metrics.watchRequestBytes(bodies.inProgress)
  const reader = createPostReader({ publicUrl, hasSandboxMessages, hasSandboxSms })
  const callbacks = callbacksRouter({ ...options, readBody: bodies.read })
  const endpoints = [
    ...emails.endpoints,
    ...sms.endpoints,
    ...domainEndpoints(call, options.registry),
    ...suppressionEndpoints(call),
    usageEndpoint(call),
  ]

  const observed = observe({ log, metrics })
  const rendered = renderErrors({ log, publicUrl })

  app.use(requestId)
  app.use(bodies.drain)
  // In front of fairStart, so that the durations include the wait there.
  app.use(observed.middleware)
  app.use(fairStart())
  app.use(rendered.middleware)
  app.use(plainPath)
  app.use(options.createDashboard({ publicUrl, readBody: bodies.read, stopping }))
  app.use(mount(endpoints, { admit, bodies, reader }))
  app.use(callbacks.router.routes())
  app.use(unsubscribeRouter(call, createUnsubscribeLinks({ secrets, publicUrl })).routes())
  app.use(docsRouter(publicUrl).routes())
  app.use(openapiRouter(endpoints, publicUrl).routes())
  app.use(healthRouter(options.readiness).routes())
  app.use(unknownRoute(admit))
  app.on('error', (error) => {
    log[CLIENT_GONE.has(error.code) ? 'debug' : 'error']({ err: error }, 'response not sent')
  })
  return {
    app,
    async idle() {
      await Promise.all([admit.idle(), emails.idle(), sms.idle(), callbacks.idle()])
      observed.flush()
      rendered.flush()
      callbacks.flush()
    },
    close: reader.close,
  }
}
