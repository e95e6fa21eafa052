import { readFile } from 'node:fs/promises'
import t from 'tap'
import { attacks } from '../attack/attacks/index.ts'
import { readPage } from '../fixtures/pages.ts'

const root = new URL('../../', import.meta.url)
const { tables } = await readPage('security')
const cells = tables.flatMap(({ rows }) => rows.map((row) => row.at(-1)?.text ?? ''))
const tests = cells.filter((cell) => /\.test\.ts|npm run attack/.test(cell))

t.test('each test that the security page names is there, with its title', async (t) => {
  t.ok(tests.length > 20)
  for (const cell of tests) {
    for (const [, file = '', titles = ''] of cell.matchAll(
      /(test\/\S+\.test\.ts): (“.*?”(?:, “.*?”)*)/g,
    )) {
      const text = await readFile(new URL(file, root), 'utf8').catch(() => '')
      for (const [, title = ''] of titles.matchAll(/“(.*?)”/g)) {
        t.ok(text.includes(title), `${file} has “${title}”`)
      }
    }
  }
})

t.test('the security page has every attack of npm run attack, and no other', async (t) => {
  const named = tests.flatMap((cell) => {
    const [, list = ''] = cell.split('npm run attack: ')
    return list.split(', ').filter((name) => name !== '')
  })
  t.same(named.sort(), attacks.map(({ name }) => name).sort())
})
