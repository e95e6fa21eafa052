import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { keepOnce, secretKey } from '../../src/db/kept-file.ts'

t.test('keepOnce: simultaneous callers get the content of one of them', async (t) => {
  const folder = join(t.testdir(), 'made')
  const contents = Array.from({ length: 8 }, (_, i) => `content ${i}`)
  const kept = await Promise.all(contents.map((content) => keepOnce(folder, 'file', content)))
  t.equal(new Set([...kept, await keepOnce(folder, 'file', 'late')]).size, 1)
  t.ok(contents.includes(kept[0] ?? ''))
  t.same(await readdir(folder), ['file'])
})

t.test('keepOnce: the file is readable by its owner only', async (t) => {
  const folder = t.testdir()
  await keepOnce(folder, 'file', 'content')
  t.equal((await stat(join(folder, 'file'))).mode & 0o777, 0o600)
})

t.test('keepOnce: names a data folder that cannot be used, with the fix', async (t) => {
  const folder = join(t.testdir(), 'taken')
  await writeFile(folder, '')
  await t.rejects(keepOnce(folder, 'file', 'content'), { message: /cannot be used.*POSTGRAM_DATA/ })
})

t.test('secretKey: returns the same 32 bytes in base64 each time', async (t) => {
  const folder = t.testdir()
  const key = await secretKey(folder)
  t.equal(Buffer.from(key, 'base64').length, 32)
  t.equal(await secretKey(folder), key)
})
