import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Router } from '@koa/router'
import type { Middleware } from 'koa'
import { escapeHtml } from '../../text/html.ts'

const DOCS_FOLDER = new URL('../../docs/', import.meta.url)

/** Nothing but the style sheet beside the pages. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/**
 * Serves the pages of src/docs at /docs/<name>, where error.docs points to, and their style sheet; at /
 * and /docs a list of them.
 */
export function docsRouter(publicUrl: string): Middleware {
  const router = new Router()
  const serve = (path: string, type: string, content: string) =>
    router.get(path, (ctx) => {
      ctx.type = type
      ctx.set('Content-Security-Policy', POLICY)
      ctx.body = content
    })
  const files = readdirSync(DOCS_FOLDER).map((file) => ({
    file,
    content: readFileSync(new URL(file, DOCS_FOLDER), 'utf8'),
  }))
  for (const { file, content } of files) {
    serve(`/docs/${file.replace(/\.html$/, '')}`, extname(file), content)
  }
  const page = files.find(({ file }) => file.endsWith('.html'))
  const index = indexPage(publicUrl, page?.content ?? '')
  for (const path of ['/', '/docs']) serve(path, '.html', index)
  return router.routes() as unknown as Middleware
}

/** The list of pages, in the order in which any page's navigation has them. */
function indexPage(publicUrl: string, page: string): string {
  const navigation = /<nav class="pages".*?<\/nav>/s.exec(page)?.[0] ?? ''
  const links = [...navigation.matchAll(/<a href="([^"]*)"[^>]*>(.*?)<\/a>/g)]
  const items = links.map(([, href = '', label]) => {
    const { pathname } = new URL(href, 'http://host/docs/')
    return `  <li><a href="${pathname}">${label}</a></li>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postgram</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<main>
<h1>Postgram</h1>
<p>Email and SMS over one HTTP API. Its base address is <code>${escapeHtml(publicUrl)}/v1</code>; every call needs an
API key.</p>
<ul>
${items.join('\n')}
</ul>
</main>
</body>
</html>
`
}
