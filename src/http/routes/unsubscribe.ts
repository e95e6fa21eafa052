import { Router } from '@koa/router'
import type { Context } from 'koa'
import type { Call } from '../../db/call.ts'
import type { UnsubscribeLinks, Unsubscription } from '../../marketing/unsubscribe-link.ts'
import { askPage, donePage, PAGE_POLICY, unknownPage } from './unsubscribe-page.ts'

/**
 * GET /u/:token shows a page with a button, because scanners open links as well; POST unsubscribes (RFC 8058).
 * Both need only the token. The body of a POST is ignored.
 */
export function unsubscribeRouter(call: Call, links: UnsubscribeLinks): Router {
  const router = new Router()
  router.get('/u/:token', async (ctx) => {
    const link = linkIn(ctx, links)
    const name = link && (await call('organisation_name', { organisation_id: link.organisationId }))
    respond(ctx, link && name ? askPage(link.email, name) : null)
  })
  router.post('/u/:token', async (ctx) => {
    const link = linkIn(ctx, links)
    const name =
      link &&
      (await call('unsubscribe', {
        organisation_id: link.organisationId,
        email: link.email,
        message_id: link.messageId,
      }))
    respond(ctx, link && name ? donePage(link.email, name) : null)
  })
  return router
}

function linkIn(ctx: Context, links: UnsubscribeLinks): Unsubscription | undefined {
  const link = links.read(ctx.params.token)
  // The token contains an address, which must not get into the log if the request fails.
  ctx.path = '/u'
  return link
}

/** Responds with a page; null: 404 with the page for an unknown link. */
function respond(ctx: Context, page: string | null): void {
  ctx.status = page === null ? 404 : 200
  ctx.set({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': PAGE_POLICY,
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Robots-Tag': 'noindex',
    'Cache-Control': 'no-store',
  })
  ctx.body = page ?? unknownPage
}
