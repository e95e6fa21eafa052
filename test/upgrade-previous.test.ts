import t from 'tap'
import { codeSha256 } from '../src/db/sql-files.ts'
import { createEmptyDatabase } from './fixtures/database.ts'
import { allSentOnce, startLoad } from './fixtures/load.ts'
import { copyVersion, previousVersion } from './fixtures/next-version.ts'
import { spawnService } from './fixtures/service.ts'

const DONE = { code: 0, stdout: '', stderr: '' }
/** What this version is refused for while the previous one runs; null where they run side by side. */
const BREAKS = null as RegExp | null

t.test('this version takes the place of the previous one under load', async (t) => {
  const found = await previousVersion()
  if (!found) t.comment('there is no history here: this version takes the place of itself')
  const previous = found ?? (await copyVersion())
  const present = await copyVersion()
  const { url, sql } = await createEmptyDatabase()
  t.same(await previous.run(['migrate'], url), DONE)
  const old = await spawnService(url, 'all', { DATABASE_URL: url }, previous.folder)
  const load = await startLoad(sql, old.base)
  await load.more(200)

  const migrated = await present.run(['migrate'], url)
  if (found && BREAKS) {
    t.match(migrated.stderr, BREAKS)
    await load.more(200)
    await load.stop()
    t.same(load.failures, [])
    t.equal(await old.end('SIGTERM'), 0)
    t.same(await present.run(['migrate'], url), DONE)
    return
  }
  t.same(migrated, DONE)
  t.same([...(await sql`select sha256 from app.code`)], [{ sha256: await codeSha256() }])
  await load.more(200)

  const fresh = await spawnService(url)
  load.join(fresh.base)
  await load.more(400)
  await load.leave(old.base)
  t.equal(await old.end('SIGTERM'), 0)
  await load.more(200)
  await load.stop()
  t.same(load.failures, [])
  await allSentOnce(t, sql)
  t.equal(await fresh.end('SIGTERM'), 0)
})
