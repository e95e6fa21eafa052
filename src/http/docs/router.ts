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
 * /docs/<page>, index.md at / and /docs as well. error.docs points to /docs/errors. The files are read at start; a page is
 * rendered at its first request, because rendering all of them delays a start.
 */
export function docsRouter(publicUrl: string): Router {
  const router = new Router()
  const serve = (path: string, type: string, content: () => string) =>
    router.get(path, (ctx) => {
      ctx.type = type
      ctx.set('Content-Security-Policy', POLICY)
      ctx.body = content()
    })
  const read = (file: string) => {
    const text = readFileSync(new URL(file, DOCS_FOLDER), 'utf8')
    return file.endsWith('.md') ? text.replaceAll(PUBLIC_URL, publicUrl) : text
  }

  const navigation = once(() => readNavigation(parse(read('index.md'))))
  // The images in its folder are for the README.
  const files = readdirSync(DOCS_FOLDER, { withFileTypes: true }).filter((one) => one.isFile())
  for (const { name: file } of files) {
    const content = read(file)
    serve(`/docs/${file}`, extname(file), () => content)
    if (!file.endsWith('.md')) continue
    const name = file.replace('.md', '')
    const html = once(() => {
      const page = parse(content)
      const { headings } = page
      return layout({ name, navigation: navigation(), headings, ...render(page) })
    })
    const paths = name === 'index' ? ['/', '/docs', '/docs/index'] : [`/docs/${name}`]
    for (const path of paths) serve(path, '.html', html)
  }
  return router
}

/** Returns a function that calls `make` at its first call, and returns the same value from then on. */
function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
