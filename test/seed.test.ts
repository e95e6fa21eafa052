import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { demoOf } from '../src/seed.ts'
import { createDatabase } from './fixtures/database.ts'

const { sql } = await createDatabase()

t.test('first starts at once share one demo, which is the same ever after', async (t) => {
  const folder = t.testdir()
  const [demo, ...others] = await Promise.all([1, 2, 3].map(() => demoOf(sql, folder)))
  for (const other of [...others, await demoOf(sql, folder)]) t.same(other, demo)
  const organisations = await sql`select from ops.organisations`
  t.equal(organisations.length, 1)
  t.equal((await stat(join(folder, 'demo.json'))).mode & 0o777, 0o600)
})
