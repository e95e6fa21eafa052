import t from 'tap'
import { codeSha256 } from '../../src/db/migrate/sql-files.ts'
import { createEmptyDatabase } from '../fixtures/database.ts'
import { copyVersion, cutRelease, previousVersion, upgradeByPage } from '../fixtures/deployment.ts'
import { allSentOnce, startLoad } from '../fixtures/load.ts'
import { type ServiceProcess, spawnService } from '../fixtures/processes.ts'

const DONE = { code: 0, stdout: '', stderr: '' }
/** Why migrate refuses this version while the previous one runs; null if both can run at once. */
const BREAKS = null as RegExp | null
/** Later than every other version. */
const VERSION = '99.0.0'

t.test('upgrade from the previous version: the steps of the page work under load', async (t) => {
  const found = await previousVersion()
  if (!found)
    t.comment('the history has no version with this baseline: this version replaces itself')
  const { folder, run } = found ?? (await copyVersion())
  const present = await copyVersion()
  const notes = await cutRelease(VERSION, { folder: present.folder, installed: folder })
  t.match(notes, /^### Changed\n\n- /, 'the tag has the notes of the changelog')
  t.notMatch(notes, /^## /m, 'and of no other release')

  const { url, sql } = await createEmptyDatabase()
  // The test server may have another default.
  await sql`alter database ${sql(new URL(url).pathname.slice(1))} set synchronous_commit = on`
  t.same(await run(['migrate'], url), DONE)
  const old = await spawnService(url, 'all', { DATABASE_URL: url }, folder)
  const load = await startLoad(sql, old.base)
  await load.more(200)

  const versions = () => sql`select ok from ops.checks where name = 'versions'`
  const fresh: ServiceProcess[] = []
  const [upgraded, checked] = await upgradeByPage(VERSION, folder, {
    env: { DATABASE_URL: url, SECRET_KEY: Buffer.alloc(32).toString('base64') },
    async restart() {
      t.same([...(await sql`select sha256 from app.code`)], [{ sha256: await codeSha256() }])
      await load.more(200)
      // As on a second machine, the new process serves before the old one stops.
      fresh.push(await spawnService(url, 'all', { DATABASE_URL: url }, folder))
      load.join(...fresh.map(({ base }) => base))
      await load.more(400)
      t.same([...(await versions())], [{ ok: false }], 'both versions are seen')
      await load.leave(old.base)
      t.equal(await old.end('SIGTERM'), 0)
    },
  })
  if (found && BREAKS) {
    t.match(upgraded, { code: 1, stderr: BREAKS })
    await load.more(200)
    await load.stop()
    t.same(load.failures, [])
    t.equal(await old.end('SIGTERM'), 0)
    t.same(await present.run(['migrate'], url), DONE)
    return
  }
  t.match(upgraded, { code: 0 })
  t.match(checked, { code: 0, stdout: `Postgram ${VERSION}\n` })
  t.notMatch(checked?.stdout, /^PROBLEM/m)
  t.match(checked?.stdout, new RegExp(`^ok {6}version: ${VERSION}$`, 'm'))
  t.same([...(await versions())], [{ ok: true }])
  await load.more(200)
  await load.stop()
  t.same(load.failures, [])
  await allSentOnce(t, sql)
  t.equal(await fresh[0]?.end('SIGTERM'), 0)
})
