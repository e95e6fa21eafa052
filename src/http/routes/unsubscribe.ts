import { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import type { Call } from '../../db/call.ts'
import type { UnsubscribeLinks, Unsubscription } from '../../marketing/unsubscribe-link.ts'
import { askPage, donePage, PAGE_POLICY, unknownPage } from './unsubscribe-page.ts'

/**
 * GET /u/:token asks, as links are also followed by scanners; POST unsubscribes (RFC 8058). The token
 * is all that either needs. A POST's body says nothing that its path does not: any is right, and none
 * is looked at, so Node throws it away.
 */
export function unsubscribeRouter(call: Call, links: UnsubscribeLinks): Middleware {
  const router = new Router()
  router.get('/u/:token', async (ctx) => {
    const link = linkIn(ctx as Context, links)
    const name = link && (await call('organisation_name', { organisation_id: link.organisationId }))
    answer(ctx as Context, link && name ? askPage(link.email, name) : null)
  })
  router.post('/u/:token', async (ctx) => {
    const link = linkIn(ctx as Context, links)
    const name =
      link &&
      (await call('unsubscribe', {
        organisation_id: link.organisationId,
        email: link.email,
        message_id: link.messageId,
      }))
    answer(ctx as Context, link && name ? donePage(link.email, name) : null)
  })
  return router.routes() as unknown as Middleware
}

function linkIn(ctx: Context, links: UnsubscribeLinks): Unsubscription | undefined {
  const link = links.read(ctx.params.token)
  // The token names an address, which must not reach the log when the request fails.
  ctx.path = '/u'
  return link
}

/** Answers with a page; null: there is none at this link. */
function answer(ctx: Context, page: string | null): void {
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
