import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Router } from '@koa/router'
import type { Middleware } from 'koa'

const DOCS_FOLDER = new URL('../docs/', import.meta.url)

/** Nothing but the style sheet beside the pages. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Serves the pages of src/docs at /docs/<name>, what error.docs points to, and their style sheet. */
export function docsRouter(): Middleware {
  const router = new Router()
  for (const file of readdirSync(DOCS_FOLDER)) {
    const content = readFileSync(new URL(file, DOCS_FOLDER), 'utf8')
    router.get(`/docs/${file.replace(/\.html$/, '')}`, (ctx) => {
      ctx.type = extname(file)
      ctx.set('Content-Security-Policy', POLICY)
      ctx.body = content
    })
  }
  return router.routes() as unknown as Middleware
}
