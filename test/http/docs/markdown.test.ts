import t from 'tap'
import { linksOf, parse, readFenceInfo } from '../../../src/http/docs/markdown.ts'
import { readNavigation } from '../../../src/http/docs/navigation.ts'
import { render } from '../../../src/http/docs/render.ts'

const htmlOf = (markdown: string) => {
  const { introduction, sections } = render(parse(markdown))
  return introduction + sections
}

t.test('parse(): headings have the ids of GitHub, repeated ones with a number', async (t) => {
  const { headings } = parse(
    '# Errors\n\n## What is `signed`?\n\n### `org_paused`\n\n## Backups & restore\n\n### Errors\n',
  )
  t.same(headings, [
    { level: 1, id: 'errors', text: 'Errors' },
    { level: 2, id: 'what-is-signed', text: 'What is signed?' },
    { level: 3, id: 'org_paused', text: 'org_paused' },
    { level: 2, id: 'backups--restore', text: 'Backups & restore' },
    { level: 3, id: 'errors-1', text: 'Errors' },
  ])
})

t.test('linksOf(): returns links as they are written, with their texts', async (t) => {
  const { tokens } = parse('See [`api` here](api.md#keys) and <https://example.net>.')
  t.same(tokens.flatMap(linksOf), [
    { href: 'api.md#keys', text: 'api here' },
    { href: 'https://example.net', text: 'https://example.net' },
  ])
})

t.test('readFenceInfo(): reads the language and attributes with and without quotes', async (t) => {
  t.same(readFenceInfo(''), { language: '', attributes: {} })
  t.same(readFenceInfo('sh run=root'), { language: 'sh', attributes: { run: 'root' } })
  t.same(readFenceInfo('sh id=upgrade not-run="needs a release"'), {
    language: 'sh',
    attributes: { id: 'upgrade', 'not-run': 'needs a release' },
  })
})

t.test('render(): what comes before the first ## heading is the introduction', async (t) => {
  t.same(render(parse('# Page\n\nFor all.\n\n## First\n\nText.\n')), {
    introduction: '<h1 id="page">Page</h1>\n<p>For all.</p>\n',
    sections: '<h2 id="first"><a href="#first">First</a></h2>\n<p>Text.</p>\n',
  })
  t.same(render(parse('Text.\n')), { introduction: '<p>Text.</p>\n', sections: '' })
})

t.test('render(): links to pages and files point to /docs, others to where they did', async (t) => {
  for (const [link, html] of [
    ['[x](webhooks.md)', '<a href="/docs/webhooks">x</a>'],
    ['[x](webhooks.md#retries)', '<a href="/docs/webhooks#retries">x</a>'],
    ['[x](alerts.yml)', '<a href="/docs/alerts.yml">x</a>'],
    ['[x](#retries)', '<a href="#retries">x</a>'],
    ['[x](https://example.net/a.md#b)', '<a href="https://example.net/a.md#b">x</a>'],
    [
      '[`x` y](../../ARCHITECTURE.md#promises) [z](api.md)',
      '<code class="name">x</code> y <a href="/docs/api">z</a>',
    ],
  ] as const) {
    t.equal(htmlOf(link), `<p>${html}</p>\n`, link)
  }
})

t.test('render(): raw HTML and code are escaped', async (t) => {
  t.equal(
    htmlOf('<b onclick="x">1 & 2</b> `<i> a`\n'),
    '<p>&lt;b onclick=&quot;x&quot;&gt;1 &amp; 2&lt;/b&gt; <code>&lt;i&gt; a</code></p>\n',
  )
  t.equal(htmlOf('[x](javascript:alert(1))\n'), '<p>[x](javascript:alert(1))</p>\n')
  t.equal(
    htmlOf('```html id=example\n<p title="&amp;">\n```\n'),
    '<pre><code class="language-html">&lt;p title=&quot;&amp;amp;&quot;&gt;\n</code></pre>\n',
  )
})

t.test('render(): a fence with a file shows its name', async (t) => {
  t.equal(
    htmlOf('```js file=a.mjs\nlet a\n```\n'),
    '<figure><figcaption>a.mjs</figcaption><pre><code class="language-js">let a\n</code></pre></figure>\n',
  )
  t.equal(htmlOf('```\nlet a\n```\n'), '<pre><code>let a\n</code></pre>\n')
})

t.test('render(): cells have the heading of their column, but for names in code', async (t) => {
  const html = htmlOf(
    '| A | `B` | |\n|---|---|---|\n| 1 | 2 | 3 |\n| `4` | `5` | |\n\n| C |\n|---|\n| 6 |\n',
  )
  t.same(
    [...html.matchAll(/<td(?: data-label="(.)")?>(.*?)<\/td>/g)].map(([, ...cell]) => cell),
    [
      ['A', '1'],
      ['B', '2'],
      [undefined, '3'],
      [undefined, '<code class="name">4</code>'],
      ['B', '<code class="name">5</code>'],
      [undefined, ''],
      ['C', '6'],
    ],
  )
})

t.test('readNavigation(): returns the first link of each item below its ## heading', async (t) => {
  const index = parse(
    '# All\n\nSee [this](other.md).\n\n## One\n\n- [A b](a.md): like [c](c.md)\n- nothing\n\n## Two\n\n- [D](d.md)\n',
  )
  t.same(readNavigation(index), [
    { label: 'One', pages: [{ name: 'a', label: 'A b' }] },
    { label: 'Two', pages: [{ name: 'd', label: 'D' }] },
  ])
})
