import Koa from 'koa'
import type { Logger } from 'pino'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import { createUnsubscribeLinks } from '../marketing/link.ts'
import type { Metrics } from '../metrics.ts'
import type { EmailProvider } from '../providers/email.ts'
import type { Secrets } from '../secrets.ts'
import { admission } from './admit.ts'
import { createBodies } from './body.ts'
import { callbacksRouter } from './callbacks.ts'
import { docsRouter } from './docs/router.ts'
import { domainEndpoints } from './domains.ts'
import { emailsRouter } from './emails.ts'
import { mount } from './endpoint.ts'
import { renderErrors } from './errors.ts'
import { fairStart } from './fair-start.ts'
import { healthRouter, type Readiness } from './health.ts'
import type { HttpLimits } from './limits.ts'
import { observe } from './observe.ts'
import { openapiRouter } from './openapi.ts'
import { plainPath } from './plain-path.ts'
import { createPostReader } from './post-reader.ts'
import { requestId } from './request-id.ts'
import { smsRouter } from './sms.ts'
import { suppressionEndpoints } from './suppressions.ts'
import { unknownRoute } from './unknown.ts'
import { unsubscribeRouter } from './unsubscribe.ts'
import { usageEndpoint } from './usage.ts'

export type AppOptions = {
  call: Call
  log: Logger
  publicUrl: string
  /** Whether what is for sandbox addresses alone goes there beside a real provider. */
  hasRehearsals: boolean
  /** Whether SMS to sandbox numbers go there beside a real provider. */
  hasSmsRehearsals: boolean
  registry: Registry
  secrets: Secrets
  readiness: Readiness
  metrics: Metrics
  emailProvider: EmailProvider
  limits: HttpLimits
}

/** Codes of errors on connections that the client has closed or reset. */
const CLIENT_GONE = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE'])

/** The whole HTTP side; middleware in the order in which a request meets it. */
export function createApp(options: AppOptions) {
  const { call, log, publicUrl, registry, secrets, metrics } = options
  const app = new Koa()
  const admit = admission(call)
  const emails = emailsRouter(options)
  const sms = smsRouter(options)
  const bodies = createBodies(options.limits)
  metrics.watchRequestBytes(bodies.inProgress)
  const reader = createPostReader({
    publicUrl,
    hasRehearsals: options.hasRehearsals,
    hasSmsRehearsals: options.hasSmsRehearsals,
  })
  const callbacks = callbacksRouter({ ...options, readBody: bodies.read })
  const endpoints = [
    ...emails.endpoints,
    ...sms.endpoints,
    ...domainEndpoints({ call, registry }),
    ...suppressionEndpoints(call),
    usageEndpoint(call),
  ]

  const observed = observe({ log, metrics })
  const rendered = renderErrors({ log, publicUrl })

  app.use(requestId())
  app.use(bodies.whole)
  // Before the wait for a turn, which its durations include.
  app.use(observed.middleware)
  app.use(fairStart())
  app.use(rendered.middleware)
  app.use(plainPath())
  app.use(mount(endpoints, { admit, bodies, reader }))
  app.use(callbacks.routes)
  app.use(unsubscribeRouter(call, createUnsubscribeLinks({ secrets, publicUrl })))
  app.use(docsRouter(publicUrl))
  app.use(openapiRouter(endpoints, publicUrl))
  app.use(healthRouter(options.readiness))
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
