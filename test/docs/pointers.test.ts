import { access, readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative, resolve } from 'node:path'
import t from 'tap'
import { type PageParts, partsOf } from '../fixtures/pages.ts'

const root = resolve(import.meta.dirname, '../..')

/** Files whose Markdown consists of examples. */
const EXAMPLES = ['test/http/docs/markdown.test.ts']

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
