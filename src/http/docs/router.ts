import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Router } from '@koa/router'
import { layout } from './layout.ts'
import { parse } from './markdown.ts'
import { readNavigation } from './navigation.ts'
import { render } from './render.ts'

const DOCS_FOLDER = new URL('../../docs/', import.meta.url)

/** Allows nothing but the style sheet beside the pages. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Stands in the pages for the address of the service. */
const PUBLIC_URL = '<PUBLIC_URL>'

/**
 * Serves the files of src/docs at /docs/<file>, and the pages among them also as HTML: <page>.md at
 * /docs/<page>, index.md at / and /docs as well. error.docs points to /docs/errors. All pages are rendered here, at start.
 */
export function docsRouter(publicUrl: string): Router {
  const router = new Router()
  const serve = (path: string, type: string, content: string) =>
    router.get(path, (ctx) => {
      ctx.type = type
      ctx.set('Content-Security-Policy', POLICY)
      ctx.body = content
    })
  const read = (file: string) => {
    const text = readFileSync(new URL(file, DOCS_FOLDER), 'utf8')
    return file.endsWith('.md') ? text.replaceAll(PUBLIC_URL, publicUrl) : text
  }

  const navigation = readNavigation(parse(read('index.md')))
  for (const file of readdirSync(DOCS_FOLDER)) {
    const content = read(file)
    serve(`/docs/${file}`, extname(file), content)
    if (!file.endsWith('.md')) continue
    const page = parse(content)
    const name = file.replace('.md', '')
    const html = layout({ name, navigation, headings: page.headings, ...render(page) })
    const paths = name === 'index' ? ['/', '/docs', '/docs/index'] : [`/docs/${name}`]
    for (const path of paths) serve(path, '.html', html)
  }
  return router
}
