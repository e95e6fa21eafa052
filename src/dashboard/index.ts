import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { PassThrough } from 'node:stream'
import { Router, type RouterContext } from '@koa/router'
import type { Context, Middleware } from 'koa'
import helmet from 'koa-helmet'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import { Refusal } from '../errors.ts'
import { storable } from '../text/storable.ts'
import { type Form, type ReadBody, readForm, refusedBy } from './form.ts'
import { type Content, html, render } from './html.ts'
import { keptForm } from './kept-form.ts'
import { layout } from './layout.ts'
import type { Frame, Outcome, Page, Resource, View, Visit } from './page.ts'
import { pages, resources } from './pages/index.ts'
import { sameOrigin } from './same-origin.ts'
import { type SessionCookie, sessionCookie } from './session.ts'
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
  const { call, publicUrl, readBody, stopping } = options
  const cookie = sessionCookie(publicUrl)
  const tools = { call, cookie, publicUrl }
  const router = new Router()

  for (const name of readdirSync(ASSETS)) {
    const content = readFileSync(new URL(name, ASSETS), 'utf8')
    router.get(`/dashboard/assets/${name}`, (ctx) => {
      ctx.type = extname(name)
      ctx.set('Cache-Control', 'public, max-age=300')
      ctx.body = content
    })
  }
  router.use(signInRouter({ ...options, cookie }).routes())
  router.get('/dashboard', (ctx) =>
    guarded(ctx, async () => {
      const { frame } = await visitOf(ctx, tools)
      const [only, ...others] = frame.organisations
      if (only && others.length === 0) ctx.redirect(`/dashboard/${only.id}`)
      else if (!only && frame.isOperator) ctx.redirect('/operator')
      else show(ctx, frame, cookie, chooseOrganisation(frame))
    }),
  )
  for (const resource of resources(call, stopping)) {
    mountResource(router, resource, { ...tools, readBody })
  }
  for (const page of pages(options)) mountPage(router, page, { ...tools, readBody })
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

function notFound(): never {
  throw new Refusal('not_found', null, {
    message: 'This page does not exist, or you may not see it.',
  })
}

type Tools = { call: Call; cookie: SessionCookie; publicUrl: string }

/** Returns the visit of a signed-in user. Refuses with unauthorized or not_found. */
async function visitOf(ctx: Context, { call, cookie, publicUrl }: Tools): Promise<Visit> {
  const session = cookie.read(ctx)
  if (!session) throw new Refusal('unauthorized')
  const organisation = storable(ctx.params?.organisation ?? '')
  const frame = (await call('dashboard_frame', {
    session,
    ...(organisation && { organisation }),
  })) as Frame
  if (ctx.path.startsWith('/operator') && !frame.isOperator) notFound()
  ctx.state.frame = frame
  const query = Object.fromEntries(
    Object.entries(ctx.query).map(([name, value]) => [name, storable([value].flat()[0] ?? '')]),
  )
  const id = storable(ctx.params?.id ?? '')
  return { ctx, session, frame, organisation, id, publicUrl, query, refused: null }
}

function mountResource(
  router: Router,
  { path, method = 'GET', respond }: Resource,
  { readBody, ...tools }: Tools & { readBody: ReadBody },
): void {
  router.register(path, [method], (ctx) =>
    guarded(ctx, async () => {
      const visit = await visitOf(ctx, tools)
      await respond(visit, method === 'POST' ? await readUsersForm(visit, readBody) : new Map())
    }),
  )
}

function mountPage(
  router: Router,
  page: Page,
  { readBody, ...tools }: Tools & { readBody: ReadBody },
): void {
  router.get(page.path, (ctx) =>
    guarded(ctx, async () => {
      const visit = await visitOf(ctx, tools)
      show(ctx, visit.frame, tools.cookie, await page.show(visit))
    }),
  )
  for (const [name, act] of Object.entries(page.actions ?? {})) {
    router.post(`${page.path}/${name}`, async (ctx) => {
      let form: Form | undefined
      try {
        const visit = await visitOf(ctx, tools)
        const sent = await readUsersForm(visit, readBody)
        form = sent
        const outcome = await act(visit, sent).catch((error) =>
          reshow(ctx, page, visit, sent, error),
        )
        respondWith(ctx, visit.frame, tools.cookie, outcome)
      } catch (error) {
        if (!isUnauthorized(error)) throw error
        keep(ctx, form ?? (await readStrangersForm(ctx, readBody)))
      }
    })
  }
}

/** Reads a form whose bytes count for its user: neither strangers nor the organisation's API share their limit. */
function readUsersForm({ ctx, frame }: Visit, readBody: ReadBody): Promise<Form> {
  return readForm(ctx, readBody, { owner: `user ${frame.email}` })
}

/**
 * Strangers can send this as well: they may not have as much parsed as users. A form of more bytes than this whose
 * session has ended is a long list or a large template.
 */
const STRANGERS_BYTES = 1024 * 1024

/** Reads a form that has no session; returns null if it is too large or no form. */
async function readStrangersForm(ctx: Context, readBody: ReadBody): Promise<Form | null> {
  try {
    return await readForm(ctx, readBody, { maxBytes: STRANGERS_BYTES })
  } catch (error) {
    if (error instanceof Refusal && error.code === 'validation_error') return null
    throw error
  }
}

/** Shows what a form had that needs a sign-in, so that it is not lost. */
function keep(ctx: Context, form: Form | null): void {
  const frame: Frame | null = ctx.state.frame ?? null
  const reason = frame
    ? 'This needs a sign-in within the last 10 minutes.'
    : 'You are not signed in any more.'
  ctx.status = 401
  ctx.type = 'html'
  ctx.body = layout({ ...keptForm(ctx.path + ctx.search, form, reason), frame, path: ctx.path })
}

const isUnauthorized = (error: unknown) => error instanceof Refusal && error.code === 'unauthorized'

/** Shows the page of a refused form again, with what was typed and what is wrong with it. */
async function reshow(
  ctx: Context,
  page: Page,
  visit: Visit,
  form: Form,
  error: unknown,
): Promise<Outcome> {
  const refused = refusedBy(error, form)
  if (!refused) throw error
  ctx.status = error instanceof Refusal ? error.status : 422
  return { ...(await page.show({ ...visit, refused })), problem: refused.message }
}

function respondWith(ctx: Context, frame: Frame, cookie: SessionCookie, outcome: Outcome): void {
  if (!('to' in outcome)) {
    show(ctx, frame, cookie, outcome)
    return
  }
  if (outcome.notice) cookie.writeNotice(ctx, outcome.notice)
  ctx.redirect(outcome.to)
  ctx.status = 303
}

function show(ctx: Context, frame: Frame, cookie: SessionCookie, view: View): void {
  const notice = cookie.takeNotice(ctx)
  const { pieces, content, ...rest } = view
  const page = (content: Content) => layout({ ...rest, content, frame, path: ctx.path, notice })
  ctx.type = 'html'
  ctx.body = pieces ? streamed(ctx, page, content, pieces) : page(content)
}

/** Returns a page that is sent piece by piece. An error, which is logged, ends it with a sentence. */
function streamed(
  ctx: Context,
  page: (content: Content) => string,
  content: Content,
  pieces: AsyncIterable<Content>,
): PassThrough {
  const mark = randomUUID()
  const [before = '', after = ''] = page([content, mark]).split(mark)
  const stream = new PassThrough()
  // Koa destroys the stream when the browser leaves.
  const write = (text: string) => !stream.destroyed && stream.write(text)
  const writeAll = async () => {
    write(before)
    for await (const piece of pieces) write(render(piece))
  }
  writeAll()
    .catch((error) => {
      ctx.app.emit('error', error, ctx)
      write(render(html`<p class="problem" role="alert">${FAILED}</p>`))
    })
    .finally(() => stream.end(after))
  return stream
}

const FAILED =
  'The service failed, and the failure was logged. Try again; if it fails again, tell the operator.'

/** Redirects to the sign-in if there is no session. */
async function guarded(ctx: Context, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!isUnauthorized(error)) throw error
    ctx.redirect('/login')
    ctx.status = 303
  }
}

function errorPage(refusal: Refusal, frame: Frame | null, path: string): string {
  const title =
    TITLES[refusal.status] ?? (refusal.status < 500 ? 'This is not possible' : 'Something failed')
  const problem = refusal.fields?._?.join('; ')
  const message = refusal.status < 500 ? (problem ?? refusal.message) : FAILED
  const content = html`<p>${message}</p><p><a href="/dashboard">To the dashboard</a></p>`
  return layout({ title, content, frame, path })
}

const TITLES: Record<number, string> = {
  403: 'You may not do this',
  404: 'Not found',
  429: 'Too many requests',
}

function chooseOrganisation({ organisations }: Frame): View {
  const content =
    organisations.length === 0
      ? html`<p>You belong to no organisation. Ask an owner to invite you.</p>`
      : html`<ul class="organisations">${organisations.map(
          ({ id, name, role }) =>
            html`<li><a href=${`/dashboard/${id}`}>${name}</a> <span>${role}</span></li>`,
        )}</ul>`
  return { title: 'Organisations', content }
}
