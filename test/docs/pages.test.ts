import { readdir, readFile } from 'node:fs/promises'
import t from 'tap'
import { environment } from '../../src/config/environment.ts'
import { catalogue } from '../../src/errors.ts'
import { STOP_WORDS } from '../../src/sms/keywords.ts'
import { segmentsOf } from '../../src/sms/segments.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, request } from '../fixtures/http.ts'
import { STATUS } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { unescaped } from '../fixtures/snippets.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const folder = new URL('../../src/docs/', import.meta.url)
const names = (await readdir(folder)).filter((file) => file.endsWith('.html'))
const pages = await Promise.all(
  names.map(async (file) => ({
    path: `/docs/${file.replace('.html', '')}`,
    text: await readFile(new URL(file, folder), 'utf8'),
  })),
)

const readText = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), 'utf8')

const allOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, found = '']) => found)

const idsOf = (text: string) => allOf(text, /\sid="([^"]*)"/g)

t.test('the catalogue has the codes and statuses of the interface', async (t) => {
  t.strictSame(
    Object.fromEntries(Object.entries(catalogue).map(([code, [status]]) => [code, status])),
    STATUS,
  )
})

t.test('the page that error.docs points to has a heading for each code', async (t) => {
  const { text } = await get(`${base}/docs/errors`, null)
  const ids = allOf(text, /<h[1-6][^>]*\sid="?([^">\s]+)/g)
  for (const code of Object.keys(catalogue)) {
    t.equal(ids.filter((id) => id === code).length, 1, code)
  }
})

t.test('every page is served, with nothing from elsewhere and nothing that runs', async (t) => {
  t.ok(pages.length >= 4)
  for (const { path, text } of pages) {
    const answer = await get(base + path, null)
    t.equal(answer.status, 200, path)
    t.equal(answer.text, text, path)
    t.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
    const policy = answer.headers.get('content-security-policy')
    t.match(policy, /^default-src 'none'; style-src 'self';/)
    t.notMatch(policy, /unsafe/)
    t.equal(allOf(text, /(<h1>)/g).length, 1, `${path} has one headline`)
    t.notMatch(text, /<(script|style|img|iframe|form)|\s(style|on[a-z]+)="/i, path)
  }
  const style = await get(`${base}/docs/style.css`, null)
  t.equal(style.status, 200)
  t.equal(style.headers.get('content-type'), 'text/css; charset=utf-8')
  t.notMatch(style.text, /@import|url\(/)
})

t.test('/ and /docs list all pages and the address of the API', async (t) => {
  for (const path of ['/', '/docs', '/docs/']) {
    const answer = await get(base + path, null)
    t.strictSame(
      [answer.status, answer.headers.get('content-type')],
      [200, 'text/html; charset=utf-8'],
      path,
    )
    t.match(answer.headers.get('content-security-policy'), /^default-src 'none'; style-src 'self';/)
    t.match(answer.text, '<code>https://postgram.test/v1</code>')
    t.notMatch(answer.text, /<(script|style|img|iframe|form)|\s(style|on[a-z]+)="/i)
    const links = allOf(answer.text, /\shref="([^"]*)"/g)
    for (const page of pages) t.ok(links.includes(page.path), page.path)
    for (const link of links)
      t.equal((await get(new URL(link, base + path).href, null)).status, 200)
  }
})

t.test('every link of a page leads somewhere', async (t) => {
  for (const { path, text } of pages) {
    const ids = idsOf(text)
    t.equal(new Set(ids).size, ids.length, `${path} has each id once`)
    const links = new Set(allOf(text, /\shref="([^"]*)"/g))
    t.ok(links.size > 5)
    for (const link of links) {
      const { origin, pathname, hash } = new URL(link, base + path)
      t.equal(origin, base, link)
      const target = await get(origin + pathname, null)
      t.equal(target.status, 200, `${path} -> ${link}`)
      if (hash) t.ok(idsOf(target.text).includes(hash.slice(1)), `${path} -> ${link}`)
    }
  }
})

t.test('every page leads to all others, in one order, and marks itself', async (t) => {
  const [first] = pages
  for (const { path, text } of pages) {
    const page = path.replace('/docs/', '')
    const navigation = (of: string) =>
      of.match(/<nav class="pages".*?<\/nav>/s)?.[0].replace(' aria-current="page"', '')
    t.equal(navigation(text), navigation(first?.text ?? ''), path)
    t.same(allOf(text, /href="([^"]+)" aria-current="page"/g), [page])
    t.match(navigation(text), `href="${page}"`)
  }
})

t.test('the characters that the page on SMS gives GSM-7 are those it has', async (t) => {
  const text = pages.find(({ path }) => path === '/docs/sms')?.text ?? ''
  const paragraph = /<p>GSM-7 has[\s\S]*?Counting as two[\s\S]*?<\/p>/.exec(text)?.[0] ?? ''
  const [single = '', double = ''] = allOf(paragraph, /<code>([\s\S]*?)<\/code>/g).map((list) =>
    unescaped(list).replaceAll(/\s/g, ''),
  )
  const plain = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 \n\r']
  const singles = new Set([...single, ...plain])
  // Beside the form feed, which nobody would look for, this is the whole alphabet.
  t.equal(singles.size, 127)
  t.equal(new Set(double).size, 9)
  const isOne = (character: string, times: number) => {
    const { encoding, parts } = segmentsOf(character.repeat(times))
    return encoding === 'gsm7' && parts.length === 1
  }
  t.strictSame(
    [...singles].filter((character) => !isOne(character, 160)),
    [],
  )
  t.strictSame(
    [...double].filter((character) => !isOne(character, 80) || isOne(character, 81)),
    [],
  )
})

t.test('the opt-out words that the page on SMS suggests do', async (t) => {
  const text = pages.find(({ path }) => path === '/docs/sms')?.text ?? ''
  const paragraph = /<p>Words that do[\s\S]*?<\/p>/.exec(text)?.[0] ?? ''
  const words = allOf(paragraph, /“([^”]*)”/g)
  t.ok(words.length >= 5)
  const bad = await sql`
    select words from unnest(${words}::text[]) words
    where not core.has_opt_out_footer('News. ' || words || '.')`
  t.same(bad, [])
})

t.test('the page on SMS lists the words that opt out, by language', async (t) => {
  const text = pages.find(({ path }) => path === '/docs/sms')?.text ?? ''
  const table = /Words that opt out[\s\S]*?<\/table>/.exec(text)?.[0] ?? ''
  const rows = [...table.matchAll(/<tr><td>(.*?)<\/td><td>([\s\S]*?)<\/td><\/tr>/g)]
  t.same(
    Object.fromEntries(
      rows.map(([, language = '', words = '']) => [language, allOf(words, /<code>(.*?)<\/code>/g)]),
    ),
    STOP_WORDS,
  )
})

t.test('every setting is described, and nothing else', async (t) => {
  const read = Object.keys(environment.entries)
  t.ok(read.length >= 15)
  const { text } = await get(`${base}/docs/operating`, null)
  const firstCells = allOf(text, /<tr><td>(.*?)<\/td>/g)
  const described = firstCells.flatMap((cell) => allOf(cell, /<code>([A-Z][A-Z_]+)<\/code>/g))
  t.same(described.sort(), read.sort())
})

t.test('what the pages and the README name in psql is there', async (t) => {
  const objects = await sql<{ name: string }[]>`
    select proname::text as name from pg_proc where pronamespace = 'ops'::regnamespace
    union
    select relname from pg_class where relnamespace = 'ops'::regnamespace`
  const known = objects.map(({ name }) => name)
  const texts = [...pages.map(({ text }) => text), await readText('README.md')]
  const named = new Set(texts.flatMap((text) => allOf(text, /\bops\.(\w+)/g)))
  t.ok(named.size > 15)
  t.same(
    [...named].filter((name) => !known.includes(name)),
    [],
  )
  t.same(
    known.filter((name) => !named.has(name)),
    [],
    'and nothing that is there goes unnamed',
  )
})

t.test('a docs page has no trailing or leading path of its own', async (t) => {
  for (const path of ['/docs/errors.html', '/docs/..%2ferrors', '/docs/none']) {
    t.equal((await get(base + path, null)).status, 404, path)
  }
  t.equal((await request('POST', `${base}/docs/errors`, null, {})).status, 404)
})

t.test('healthz says that the process is up, readyz that it can serve', async (t) => {
  const health = await get(`${base}/healthz`, null)
  t.strictSame([health.status, health.json], [200, { status: 'up' }])
  const ready = await get(`${base}/readyz`, null)
  t.strictSame([ready.status, ready.json], [200, { status: 'ready' }])
})

t.test('readyz is 503 while the code of another version lacks what this one calls', async (t) => {
  const [code] = await sql`select sha256 from app.code`
  await sql`update app.code set sha256 = 'another'`
  t.equal((await get(`${base}/readyz`, null)).status, 200, 'as long as it has all of it, it may')
  await sql`alter function api.list_domains rename to domains_of`
  for (const [isFormer, version] of [
    [false, 'older than this version'],
    [true, 'of another version'],
  ] as const) {
    await sql`update app.code set sha256 = ${`yet another ${version}`}`
    if (isFormer) {
      await sql`insert into app.former_code (sha256, replaced_at) values (${code?.sha256}, now())`
    }
    const other = await get(`${base}/readyz`, null)
    t.strictSame(
      [other.status, other.json],
      [503, { status: `the schema is ${version}: api.list_domains is gone` }],
    )
  }
  t.equal((await get(`${base}/healthz`, null)).status, 200, 'healthz does not ask')
  await sql`alter function api.domains_of rename to list_domains`
  await sql`update app.code set sha256 = ${code?.sha256}`
  await sql`delete from app.former_code`
  t.equal((await get(`${base}/readyz`, null)).status, 200)
})

t.test('readyz is 503 while the function that it calls is gone', async (t) => {
  await sql`alter function api.health rename to health_away`
  const { status, json } = await get(`${base}/readyz`, null)
  t.strictSame(
    [status, json],
    [503, { status: 'the schema is of another version: api.health is gone' }],
  )
  await sql`alter function api.health_away rename to health`
  t.equal((await get(`${base}/readyz`, null)).status, 200)
})
