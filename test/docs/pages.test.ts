import { readdir, readFile } from 'node:fs/promises'
import t from 'tap'
import { catalogue } from '../../src/errors.ts'
import { STOP_WORDS } from '../../src/sms/keywords.ts'
import { segmentsOf } from '../../src/sms/segments.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, request, STATUS } from '../fixtures/http.ts'
import {
  messageFields,
  type PageParts,
  partsOf,
  readPage,
  settingNames,
} from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const folder = new URL('../../src/docs/', import.meta.url)
const names = (await readdir(folder))
  .filter((file) => file.endsWith('.md'))
  .map((file) => file.replace('.md', ''))
  .sort()
const pages = new Map<string, PageParts>()
for (const name of names) pages.set(name, await readPage(name))

const readText = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), 'utf8')

const allOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, found = '']) => found)

const idsOf = (html: string) => allOf(html, /\sid="([^"]*)"/g)

t.test('the catalogue has the codes and statuses of the interface', async (t) => {
  t.strictSame(
    Object.fromEntries(Object.entries(catalogue).map(([code, [status]]) => [code, status])),
    STATUS,
  )
})

t.test('the page that error.docs points to has a heading for each code', async (t) => {
  const ids = idsOf((await get(`${base}/docs/errors`, null)).text)
  for (const code of Object.keys(catalogue)) {
    t.equal(ids.filter((id) => id === code).length, 1, code)
  }
})

t.test('every page is served as HTML without scripts, inline styles and frames', async (t) => {
  t.ok(names.length >= 12)
  for (const path of ['/', '/docs', '/docs/', ...names.map((name) => `/docs/${name}`)]) {
    const response = await get(base + path, null)
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8', path)
    const policy = response.headers.get('content-security-policy')
    t.match(policy, /^default-src 'none'; style-src 'self';/)
    t.notMatch(policy, /unsafe/)
    t.equal(allOf(response.text, /(<h1[ >])/g).length, 1, `${path} has one headline`)
    t.notMatch(response.text, /<(script|style|img|iframe|form)|\s(style|on[a-z]+)="/i, path)
    const ids = idsOf(response.text)
    t.equal(new Set(ids).size, ids.length, `${path} has each id once`)
  }
  const style = await get(`${base}/docs/style.css`, null)
  t.equal(style.status, 200)
  t.equal(style.headers.get('content-type'), 'text/css; charset=utf-8')
  t.notMatch(style.text, /@import|url\(/)
})

t.test('every page is served as Markdown, with the address of the service', async (t) => {
  for (const name of names) {
    const response = await get(`${base}/docs/${name}.md`, null)
    t.equal(response.status, 200, name)
    t.equal(response.headers.get('content-type'), 'text/markdown; charset=utf-8', name)
    const { markdown = '' } = pages.get(name) ?? {}
    t.equal(response.text, markdown.replaceAll('<PUBLIC_URL>', 'https://postgram.test'), name)
  }
})

t.test('/, /docs and /docs/index are one page with the address of the API', async (t) => {
  const { text } = await get(`${base}/docs/index`, null)
  t.match(text, '>https://postgram.test/v1</code>')
  for (const path of ['/', '/docs', '/docs/']) {
    t.equal((await get(base + path, null)).text, text, path)
  }
})

t.test('every page has the same navigation to all pages, and marks itself', async (t) => {
  const navigationOf = async (name: string) => {
    const { text } = await get(`${base}/docs/${name}`, null)
    return /<nav class="pages"[\s\S]*?<\/nav>/.exec(text)?.[0] ?? ''
  }
  const ofIndex = await navigationOf('index')
  const links = allOf(ofIndex, /\shref="\/docs\/([^"]*)"/g)
  t.same(
    [...links].sort(),
    names.filter((name) => name !== 'index'),
  )
  for (const name of links) {
    const navigation = await navigationOf(name)
    t.same(allOf(navigation, /href="\/docs\/([^"]+)" aria-current="page"/g), [name])
    t.equal(navigation.replace(' aria-current="page"', ''), ofIndex, name)
  }
})

t.test('every page but the index lists its ## and ### headings as contents', async (t) => {
  for (const name of names) {
    const { text } = await get(`${base}/docs/${name}`, null)
    const contents = /<nav class="contents"[\s\S]*?<\/nav>/.exec(text)?.[0] ?? ''
    const headings =
      pages.get(name)?.headings.filter(({ level }) => level === 2 || level === 3) ?? []
    t.same(
      allOf(contents, /href="#([^"]*)"/g),
      name === 'index' ? [] : headings.map(({ id }) => id),
      name,
    )
  }
})

t.test('every link of a served page leads to a served page and an id there', async (t) => {
  for (const name of names) {
    const path = `/docs/${name}`
    const { text } = await get(base + path, null)
    for (const link of new Set(allOf(text, /\shref="([^"]*)"/g))) {
      const { origin, pathname, hash } = new URL(link, base + path)
      if (origin !== base) continue
      const target = await get(origin + pathname, null)
      t.equal(target.status, 200, `${path} -> ${link}`)
      if (hash) t.ok(idsOf(target.text).includes(hash.slice(1)), `${path} -> ${link}`)
    }
  }
})

t.test('the characters that the page on SMS gives GSM-7 are those it has', async (t) => {
  const { blocks, paragraphs } = await readPage('sms')
  const block = blocks.find(({ introduction }) => introduction.startsWith('GSM-7 '))
  const paragraph = paragraphs.find(({ text }) => /count(s|ing)? as two/i.test(text))
  const single = block?.text.replaceAll(/\s/g, '') ?? ''
  const double = paragraph?.codes[0]?.replaceAll(/\s/g, '') ?? ''
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
  const { paragraphs } = await readPage('sms')
  const paragraph = paragraphs.find(({ text }) => text.includes('“Reply STOP to opt out”'))
  const words = allOf(paragraph?.text ?? '', /“([^”]*)”/g)
  t.ok(words.length >= 5)
  const bad = await sql`
    select words from unnest(${words}::text[]) words
    where not core.has_opt_out_footer('News. ' || words || '.')`
  t.same(bad, [])
})

t.test('the page on SMS lists the words that opt out, by language', async (t) => {
  const { tables } = await readPage('sms')
  const table = tables.find(({ head }) => head[0]?.text === 'Language')
  const rows = table?.rows.map(([language, words]) => [language?.text, words?.codes]) ?? []
  t.same(Object.fromEntries(rows), STOP_WORDS)
})

t.test('every setting is described, and nothing else', async (t) => {
  t.ok(settingNames.length >= 15)
  const { tables } = await readPage('operations')
  const firstCells = tables.flatMap(({ rows }) => rows.flatMap(([first]) => first?.codes ?? []))
  const described = firstCells.filter((code) => /^[A-Z][A-Z_]+$/.test(code))
  t.same(described.sort(), settingNames.sort(), 'in the tables of src/docs/operations.md')
})

t.test('the examples of messages and events have every field of the message object', async (t) => {
  const examples = [...pages].flatMap(([name, { blocks }]) =>
    blocks
      .filter(({ language }) => language === 'json')
      .map(({ text }) => JSON.parse(text))
      .map((example) => ({ name, message: example.data ?? example }))
      .filter(({ message }) => message.channel),
  )
  t.equal(examples.length, 3)
  for (const { name, message } of examples) {
    const fields = Object.keys(message).filter((field) => field !== 'events')
    t.same(fields, await messageFields(message.channel), `src/docs/${name}.md`)
  }
})

t.test('what the pages and the README name in psql is there', async (t) => {
  const objects = await sql<{ name: string }[]>`
    select proname::text as name from pg_proc where pronamespace = 'ops'::regnamespace
    union
    select relname from pg_class where relnamespace = 'ops'::regnamespace`
  const known = objects.map(({ name }) => name)
  const texts = [...pages.values()].map(({ markdown }) => markdown)
  const named = new Set(
    [...texts, await readText('README.md')].flatMap((text) => allOf(text, /\bops\.(\w+)/g)),
  )
  t.ok(named.size > 15)
  t.same(
    [...named].filter((name) => !known.includes(name)),
    [],
  )
  t.same(
    known.filter((name) => !named.has(name)),
    [],
    'a page or the README names every object of ops; most are in src/docs/operations.md',
  )
})

t.test(
  'each select of the pages and the README names objects and columns that exist',
  async (t) => {
    const readme = partsOf(await readText('README.md'))
    let count = 0
    for (const [name, { blocks, codes }] of [...pages, ['README', readme] as const]) {
      const statements = blocks
        .filter(({ language }) => language === 'sql')
        .flatMap(({ text }) => text.replaceAll(/--.*$/gm, '').split(';'))
      for (const statement of [...statements, ...codes].map((text) => text.trim())) {
        if (!/^select\b.*\bops\./s.test(statement) || statement.includes('(…)')) continue
        count += 1
        await sql
          .unsafe(`prepare checked as ${statement}; deallocate checked`)
          .simple()
          .catch((error) => t.fail(`${name}: ${statement}: ${error.message}`))
      }
    }
    t.ok(count > 100)
  },
)

t.test('docs: unknown pages and files outside of src/docs respond with 404', async (t) => {
  for (const path of [
    '/docs/errors.html',
    '/docs/..%2ferrors',
    '/docs/none',
    '/docs/none.md',
    '/docs/ARCHITECTURE',
    '/docs/ARCHITECTURE.md',
    '/docs/CONTRIBUTING.md',
  ]) {
    const response = await get(base + path, null)
    t.strictSame([response.status, response.json?.error.code], [404, 'not_found'], path)
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
