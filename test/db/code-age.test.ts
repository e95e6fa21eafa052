import t from 'tap'
import { codeAge } from '../../src/db/migrate/code-age.ts'
import { createDatabase } from '../fixtures/database.ts'

t.test('codeAge(): a migration that this version lacks makes a database newer', async (t) => {
  const { sql } = await createDatabase()
  t.equal(await codeAge(sql), 'current')
  await sql`update app.code set sha256 = 'another'`
  t.equal(await codeAge(sql), 'older')
  await sql`insert into app.migrations (id, sha256) values ('9999_later', 'x')`
  t.equal(await codeAge(sql), 'newer', 'also where this version was never in place')
})
