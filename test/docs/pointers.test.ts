import { access, readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative, resolve } from 'node:path'
import t from 'tap'
import { type PageParts, partsOf } from '../fixtures/pages.ts'

const root = resolve(import.meta.dirname, '../..')

/** Files whose Markdown consists of examples. */
const EXAMPLES = ['test/http/docs/markdown.test.ts']

/** Paths with a placeholder. */
const PATTERNS = ['sql/migrations/NNNN_topic.sql']

/** Functions of Postgres. */
const FOREIGN = ['clock_timestamp']

/** Names that tests use for pages that do not exist. */
const UNKNOWN = ['none', 'nothing', 'errors.html']

const inFolder = async (folder: string) =>
  (await readdir(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const files = [
  ...(await Promise.all(['src', 'sql', 'tasks', 'test', '.ci'].map(inFolder))).flat(),
  ...(await readdir(root, { withFileTypes: true }))
    .filter(
      (entry) => entry.isFile() && !/^(package-lock|bench)\.json$|^\.(env|git)$/.test(entry.name),
    )
    .map(({ name }) => name),
].filter((file) => !EXAMPLES.includes(file))

const texts = new Map<string, string>()
for (const file of files) texts.set(file, await readFile(join(root, file), 'utf8'))

/** The Markdown files of the repository, by their paths. */
const documents = new Map<string, PageParts>()
for (const [file, text] of texts) if (file.endsWith('.md')) documents.set(file, partsOf(text))

const pages = [...documents].filter(([file]) => file.startsWith('src/docs/'))

/** What the changelog names may be gone. */
const documentsOfToday = [...documents].filter(([file]) => file !== 'CHANGELOG.md')

/** The texts of all files below a folder. */
const sources = (folder: string) =>
  [...texts]
    .filter(([file]) => file.startsWith(folder))
    .map(([, text]) => text)
    .join('\n')

const allOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, found = '']) => found)

/** What is wrong with a pointer to a heading of a file, or to a file; null if it leads somewhere. */
async function problemOf(file: string, heading: string | undefined): Promise<string | null> {
  const document = documents.get(file)
  if (!document) {
    const exists = await access(join(root, file)).then(
      () => true,
      () => false,
    )
    return exists && !heading ? null : `there is no ${file}`
  }
  if (!heading || document.headings.some(({ id }) => id === heading)) return null
  return `${file} has no heading #${heading}`
}

t.test('each page begins with its only title and a paragraph', async (t) => {
  t.ok(pages.length >= 12)
  for (const [file, { markdown, headings }] of pages) {
    t.match(markdown, /^# \S.*\n\n[A-Za-z`*]/, file)
    t.equal(headings.filter(({ level }) => level === 1).length, 1, file)
    t.notMatch(markdown, /^#{1,6} .*\]\(/m, `${file} has no link in a heading`)
    t.notMatch(
      markdown,
      /<\/?(a|b|br|code|div|h\d|i|img|li|p|pre|span|table|td|th|tr|ul)\b[^`]*>$/m,
    )
  }
})

t.test('each code block of a page names its language', async (t) => {
  for (const [file, { blocks }] of pages) {
    for (const { language, text } of blocks) t.match(language, /^[a-z]+$/, `${file}: ${text}`)
  }
})

t.test('each link of a Markdown file leads to a file and a heading', async (t) => {
  for (const [file, { links }] of documents) {
    for (const { href } of links) {
      if (/^https?:|^mailto:/.test(href)) continue
      const [path = '', heading] = href.split('#')
      const target = path === '' ? file : normalize(join(dirname(file), path))
      t.equal(await problemOf(target, heading), null, `${file} -> ${href}`)
    }
  }
})

t.test('each file and folder that a Markdown file names exists', async (t) => {
  const path = /^(?:src|sql|tasks|test|\.ci)(?:\/[\w@.-]+)*$/
  let count = 0
  for (const [file, { codes }] of documentsOfToday) {
    for (const code of codes.filter((text) => path.test(text) && !PATTERNS.includes(text))) {
      count += 1
      t.equal(await problemOf(code, undefined), null, `${file}: ${code}`)
    }
  }
  t.ok(count > 100)
})

t.test('each SQL object that a Markdown file names is created', async (t) => {
  const schemas = 'api|app|core|ops'
  const created = new RegExp(
    `\\bcreate (?:unlogged )?(?:table|type|view|function) ((?:${schemas})\\.\\w+)`,
    'g',
  )
  const objects = new Set(allOf(sources('sql/'), created))
  t.ok(objects.size > 300)
  const named = new RegExp(`(?<![\\w./-])((?:${schemas})\\.[a-z_]+\\b(?![./]))`, 'g')
  let count = 0
  for (const [file, { codes }] of documentsOfToday) {
    for (const name of codes.flatMap((code) => allOf(code, named))) {
      if (/\.(md|ts)$/.test(name) || files.includes(name)) continue
      count += 1
      t.ok(objects.has(name), `${file}: ${name}`)
    }
  }
  t.ok(count > 200)
})

t.test('each function and type that a page for developers names is declared', async (t) => {
  const declared = new Set([
    ...allOf(
      ['src/', 'tasks/', 'test/'].map(sources).join('\n'),
      /\b(?:const|class|function|type) (\w+)/g,
    ),
    ...allOf(sources('src/'), /^ {2}(?:async )?(\w+)(?=\(|\??:)/gm),
  ])
  let count = 0
  for (const [file, { codes }] of documentsOfToday) {
    if (!/^(ARCHITECTURE|CONTRIBUTING)\.md$/.test(file)) continue
    const names = codes.flatMap((code) =>
      allOf(code, /^([A-Za-z]+[a-z][A-Z]\w*|\w+(?=\())(?:\(.*\))?$/g),
    )
    for (const name of names.filter((each) => !FOREIGN.includes(each))) {
      count += 1
      t.ok(declared.has(name), `${file}: ${name}`)
    }
  }
  t.ok(count > 5)
})

t.test('each pointer to a page in code, SQL, tests and settings leads to a heading', async (t) => {
  // Neither pages of others, as example.com/docs/x, nor src/http/docs and test/docs.
  const served = /(?<=^|[^\w./-]|\bsrc|\.test)\/docs\/([a-z][\w@.-]*\w)(?:#([\w-]+))?/gm
  const named = /(?<![\w/])([\w-]+)\.md#([\w-]+)/g
  let count = 0
  for (const [file, source] of texts) {
    const text = source.replaceAll('\\/', '/')
    for (const [pointer, name = '', heading] of text.matchAll(served)) {
      if (UNKNOWN.includes(name.replace(/\.md$/, ''))) continue
      count += 1
      const target = `src/docs/${documents.has(`src/docs/${name}.md`) ? `${name}.md` : name}`
      t.equal(await problemOf(target, heading), null, `${file}: ${pointer}`)
    }
    for (const [pointer, name = '', heading] of text.matchAll(named)) {
      count += 1
      const target = documents.has(`${name}.md`) ? `${name}.md` : `src/docs/${name}.md`
      t.equal(await problemOf(target, heading), null, `${file}: ${pointer}`)
    }
  }
  t.ok(count > 40)
})
