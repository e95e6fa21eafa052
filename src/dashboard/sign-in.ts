import { isIPv6 } from 'node:net'
import { Router } from '@koa/router'
import type { Context } from 'koa'
import * as v from 'valibot'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import { Refusal } from '../errors.ts'
import { isPublicAddress } from '../webhooks/addresses.ts'
import {
  emailAddress,
  parseForm,
  type ReadBody,
  type Refused,
  readForm,
  refusedBy,
} from './form.ts'
import { type Content, html } from './html.ts'
import { layout } from './layout.ts'
import { field } from './parts.ts'
import { hashOf, newToken, type SessionCookie } from './session.ts'

type SignInOptions = {
  call: Call
  secrets: Secrets
  cookie: SessionCookie
  readBody: ReadBody
}

/** An address fits, and strangers cannot have more parsed. */
const MAX_BYTES = 64 * 1024

const requestSchema = v.strictObject({ email: emailAddress })

/**
 * The routes that sign in and out. A link in an email opens a page with a button, because scanners open links as
 * well; its POST uses the link.
 */
export function signInRouter({ call, secrets, cookie, readBody }: SignInOptions): Router {
  const router = new Router()

  router.get('/login', (ctx) => {
    const reason = ctx.query.again === '' ? 'Sign in again to continue.' : null
    respond(ctx, 'Sign in', requestForm(null), { problem: reason })
  })

  router.post('/login', async (ctx) => {
    const form = await readForm(ctx, readBody, { maxBytes: MAX_BYTES })
    try {
      const { email } = parseForm(requestSchema, form)
      const token = newToken()
      await call('request_sign_in', {
        email,
        client_address: clientOf(ctx),
        token_sha256: hashOf(token),
        sealed_token: secrets.seal(token),
      })
      respond(
        ctx,
        'Check your email',
        html`<p>If ${email} may sign in, an email with a link is on its way. The link works once, within 15 minutes.</p>
          <p><a href="/login">Use another address</a></p>`,
      )
    } catch (error) {
      const refused = refusedBy(error, form)
      if (!refused || !(error instanceof Refusal)) throw error
      ctx.status = error.status
      if (error.retryAfter !== undefined) ctx.set('Retry-After', String(error.retryAfter))
      respond(ctx, 'Sign in', requestForm(refused), { problem: refused.message })
    }
  })

  router.get('/login/:token', async (ctx) => {
    const { token = '' } = ctx.params
    hideToken(ctx)
    const isUsable = await call('is_sign_in_link', { token_sha256: hashOf(token) })
    if (!isUsable) return respondExpired(ctx)
    respond(
      ctx,
      'Sign in',
      html`<form method="post" action=${`/login/${token}`}><button>Sign in to Postgram</button></form>`,
    )
  })

  router.post('/login/:token', async (ctx) => {
    const { token = '' } = ctx.params
    hideToken(ctx)
    const former = cookie.read(ctx)
    const session = newToken()
    const isSignedIn = await call('sign_in', {
      token_sha256: hashOf(token),
      session_sha256: hashOf(session),
      client: ctx.get('User-Agent'),
      ...(former && { former_session: former }),
    })
    if (!isSignedIn) return respondExpired(ctx)
    cookie.write(ctx, session)
    ctx.status = 303
    ctx.redirect(destinationOf(cookie.destination.take(ctx)))
  })

  router.post('/logout', async (ctx) => {
    const session = cookie.read(ctx)
    if (session) await call('sign_out', { session })
    cookie.clear(ctx)
    ctx.status = 303
    ctx.redirect('/login')
  })

  return router
}

/** Returns the page that was asked for before the sign-in; a cookie with anything else leads to the first page. */
function destinationOf(path: string | null): string {
  return path && /^\/(dashboard|operator)(?![^/?])/.test(path) ? path : '/dashboard'
}

function requestForm(refused: Refused | null) {
  return html`<form method="post" action="/login" class="stack">
    ${field({ name: 'email', label: 'Email address', type: 'email', refused, isRequired: true, autocomplete: 'email' })}
    <button>Email me a link</button>
  </form>`
}

function respond(
  ctx: Context,
  title: string,
  content: Content,
  { problem = null }: { problem?: string | null } = {},
): void {
  ctx.type = 'html'
  ctx.body = layout({ title, content, frame: null, path: '/login', problem })
}

function respondExpired(ctx: Context): void {
  ctx.status = 410
  respond(
    ctx,
    'This link no longer works',
    html`<p>A link works once, within 15 minutes. <a href="/login">Request a new link</a></p>`,
  )
}

/**
 * The IP address of the browser; of IPv6 the network, as one client has all of its addresses. A reverse proxy on this
 * machine or in a private network adds it as the last value of X-Forwarded-For; from other clients the header is not
 * trusted.
 */
function clientOf(ctx: Context): string {
  const address = ctx.ip.replace(/^::ffff:/, '')
  const forwarded = ctx.get('X-Forwarded-For').split(',').at(-1)?.trim()
  return networkOf((!isPublicAddress(address) && forwarded) || address)
}

/** Returns the first 64 bits of an IPv6 address, and other texts as they are. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail ? tail.split(':') : []
  const zeros = Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0')
  return [...groups, ...zeros, ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

/** The path must not reach a log: until it is used, the token signs in. */
function hideToken(ctx: Context): void {
  ctx.path = '/login'
}
