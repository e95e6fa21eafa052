import { Router } from '@koa/router'
import type { Context } from 'koa'
import type { Call } from '../db/call.ts'
import { Refusal } from '../errors.ts'
import { storable } from '../text/storable.ts'
import { notFound } from './error-page.ts'
import { type Form, type ReadBody, readForm, refusedBy } from './form.ts'
import { html } from './html.ts'
import { keptForm } from './kept-form.ts'
import { layout } from './layout.ts'
import type { Frame, Outcome, Page, Resource, View, Visit } from './page.ts'
import { respondView } from './respond-view.ts'
import type { SessionCookie } from './session.ts'

type PageRouterOptions = {
  call: Call
  cookie: SessionCookie
  publicUrl: string
  readBody: ReadBody
  pages: readonly Page[]
  resources: readonly Resource[]
}

/** The routes of signed-in users: pages with their actions, resources, and the choice of an organisation. */
export function pageRouter(options: PageRouterOptions): Router {
  const { call, cookie, publicUrl, readBody, pages, resources } = options
  const router = new Router()

  /** Returns the visit of a signed-in user. Refuses with unauthorized or not_found. */
  async function visitOf(ctx: Context): Promise<Visit> {
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

  /** Has the sign-in lead to the page that was asked for. */
  const keepDestination = (ctx: Context) => {
    if (ctx.url.length <= MAX_DESTINATION) cookie.destination.write(ctx, ctx.url)
  }

  const show = (ctx: Context, frame: Frame, view: View) =>
    respondView(ctx, frame, cookie.notice.take(ctx), view)

  router.get(
    '/dashboard',
    guarded(async (ctx) => {
      const { frame } = await visitOf(ctx)
      const [only, ...others] = frame.organisations
      if (only && others.length === 0) ctx.redirect(`/dashboard/${only.id}`)
      else if (!only && frame.isOperator) ctx.redirect('/operator')
      else show(ctx, frame, chooseOrganisation(frame))
    }),
  )

  for (const { path, method = 'GET', respond } of resources) {
    router.register(
      path,
      [method],
      guarded(async (ctx) => {
        const visit = await visitOf(ctx)
        await respond(visit, method === 'POST' ? await readUsersForm(visit, readBody) : new Map())
      }),
    )
  }

  for (const page of pages) {
    router.get(
      page.path,
      guarded(async (ctx) => {
        const visit = await visitOf(ctx)
        show(ctx, visit.frame, await page.show(visit))
      }, keepDestination),
    )
    for (const [name, act] of Object.entries(page.actions ?? {})) {
      router.post(`${page.path}/${name}`, async (ctx) => {
        let form: Form | undefined
        try {
          const visit = await visitOf(ctx)
          const sent = await readUsersForm(visit, readBody)
          form = sent
          const outcome = await act(visit, sent).catch((error) => reshow(page, visit, sent, error))
          if (!('to' in outcome)) return show(ctx, visit.frame, outcome)
          if (outcome.notice) cookie.notice.write(ctx, outcome.notice)
          ctx.redirect(outcome.to)
          ctx.status = 303
        } catch (error) {
          if (!isUnauthorized(error)) throw error
          keep(ctx, form ?? (await readStrangersForm(ctx, readBody)))
        }
      })
    }
  }

  return router
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

/** A longer URL would not fit in a cookie. */
const MAX_DESTINATION = 1000

/** Redirects to the sign-in if there is no session, after `beforeSignIn`. */
function guarded(
  respond: (ctx: Context) => Promise<void>,
  beforeSignIn: (ctx: Context) => void = () => undefined,
): (ctx: Context) => Promise<void> {
  return async (ctx) => {
    try {
      await respond(ctx)
    } catch (error) {
      if (!isUnauthorized(error)) throw error
      beforeSignIn(ctx)
      ctx.redirect('/login')
      ctx.status = 303
    }
  }
}

/** Shows the page of a refused form again, with what was typed and what is wrong with it. */
async function reshow(page: Page, visit: Visit, form: Form, error: unknown): Promise<Outcome> {
  const refused = refusedBy(error, form)
  if (!refused) throw error
  visit.ctx.status = error instanceof Refusal ? error.status : 422
  return { ...(await page.show({ ...visit, refused })), problem: refused.message }
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
