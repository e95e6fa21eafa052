import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { demoOf } from '../../src/cli/demo.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

t.test('demoOf: simultaneous first starts share one demo, which stays the same', async (t) => {
  const folder = t.testdir()
  const [first, ...others] = await Promise.all([1, 2, 3].map(() => demoOf(sql, folder)))
  t.equal(first?.isNew, true)
  for (const { demo } of others) t.same(demo, first?.demo)
  t.same(await demoOf(sql, folder), { demo: first?.demo, isNew: false })
  const organisations = await sql`select from ops.organisations`
  t.equal(organisations.length, 1)
  t.equal((await stat(join(folder, 'demo.json'))).mode & 0o777, 0o600)
})
