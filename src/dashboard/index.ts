import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Router, type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import helmet from 'koa-helmet'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import type { Refusal } from '../errors.ts'
import { errorPage, notFound } from './error-page.ts'
import type { ReadBody } from './form.ts'
import { pageRouter } from './page-router.ts'
import { pages, resources } from './pages/index.ts'
import { sameOrigin } from './same-origin.ts'
import { sessionCookie } from './session.ts'
import { signInRouter } from './sign-in.ts'

type DashboardOptions = {
  call: Call
  registry: Registry
  secrets: Secrets
  publicUrl: string
  readBody: ReadBody
  /** Whether emails to sandbox addresses alone go to the sandbox although a real provider is configured. */
  hasSandboxMessages: boolean
  /** Aborted when the process stops; streams end then. */
  stopping: AbortSignal
}

const PATHS = /^\/(dashboard|operator|login|logout)(\/|$)/

const ASSETS = new URL('assets/', import.meta.url)

/** Creates the middleware that serves the dashboard and passes other requests on. */
export function createDashboard(options: DashboardOptions): Middleware {
  const { call, publicUrl, stopping } = options
  const withCookie = { ...options, cookie: sessionCookie(publicUrl) }
  const router = new Router()
  router.use(assetRouter().routes())
  router.use(signInRouter(withCookie).routes())
  router.use(
    pageRouter({
      ...withCookie,
      pages: pages(options),
      resources: resources(call, stopping),
    }).routes(),
  )
  const routes = router.routes()

  const serve: Middleware = async (ctx, next) => {
    if (!PATHS.test(ctx.path)) return next()
    ctx.set('Cache-Control', 'no-store')
    ctx.state.errorPage = (refusal: Refusal) =>
      errorPage(refusal, ctx.state.frame ?? null, ctx.path)
    await headers(ctx, async () => {
      await sameOrigin(ctx, async () => {
        await routes(ctx as RouterContext, async () => notFound())
      })
    })
  }
  return serve
}

/** The routes of scripts and styles. */
function assetRouter(): Router {
  const router = new Router()
  for (const name of readdirSync(ASSETS)) {
    const content = readFileSync(new URL(name, ASSETS), 'utf8')
    router.get(`/dashboard/assets/${name}`, (ctx) => {
      ctx.type = extname(name)
      ctx.set('Cache-Control', 'public, max-age=300')
      ctx.body = content
    })
  }
  return router
}

/** Nothing of another host is loaded; script and style are files. */
const headers = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      frameSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // Without a referrer, browsers send "Origin: null", by which src/dashboard/same-origin.ts would refuse the own forms of
  // a service without HTTPS, to which they send no Sec-Fetch-Site.
  referrerPolicy: { policy: 'same-origin' },
  // The operator's proxy decides about HTTPS.
  strictTransportSecurity: false,
})
