import { readFile } from 'node:fs/promises'
import t from 'tap'
import { attacks } from '../attack/attacks/index.ts'
import { unescaped } from '../fixtures/snippets.ts'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('src/docs/security.html', root), 'utf8')
const cells = [...page.matchAll(/<td>([^\n]*)<\/td><\/tr>/g)].map(([, cell = '']) => cell)
const tests = cells.filter((cell) => /\.test\.ts|npm run attack/.test(cell))

t.test('each test that the security page names is there, with its title', async (t) => {
  t.ok(tests.length > 20)
  for (const cell of tests) {
    for (const [, file = '', titles = ''] of cell.matchAll(
      /<code>(test\/[^<]*)<\/code>: (“.*?”(?:, “.*?”)*)/g,
    )) {
      const text = await readFile(new URL(file, root), 'utf8').catch(() => '')
      for (const [, title = ''] of titles.matchAll(/“(.*?)”/g)) {
        t.ok(text.includes(unescaped(title)), `${file} has “${title}”`)
      }
    }
  }
})

t.test('the security page has every attack of npm run attack, and no other', async (t) => {
  const named = tests.flatMap((cell) => {
    const [, list = ''] = cell.split('<code>npm run attack</code>: ')
    return [...list.matchAll(/<code>([^<]*)<\/code>/g)].map(([, name = '']) => name)
  })
  t.same(named.sort(), attacks.map(({ name }) => name).sort())
})
