import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { rolledBack } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import {
  initialise,
  noPostgres,
  runPostgres,
  serverFolder,
  startServer,
} from '../fixtures/postgres.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

t.test('point-in-time recovery: a server is restored', { skip: noPostgres }, async (t) => {
  const folder = await serverFolder()
  const archive = join(folder, 'archive')
  await initialise(join(folder, 'data'))
  const live = await startServer(join(folder, 'data'), [
    'fsync = off',
    'archive_mode = on',
    `archive_command = 'mkdir -p "${archive}" && cp "%p" "${archive}/%f"'`,
  ])
  const url = live.urlOf('postgres', 'postgres')
  await migrate(url)
  const sql = connect(url, { max: 2 })
  t.teardown(() => sql.end())
  await t.test(
    'ops.checks: counts the connected synchronous standbys and reports one that is behind',
    async (t) => {
      const hasThem = async () => {
        const [check] = await sql<{ ok: boolean; severity: string | null }[]>`
        select ok, severity from ops.checks where name = 'synchronous standbys'`
        // Not an assertion, as a poll calls this.
        if (check?.severity !== (check?.ok ? null : 'problem'))
          throw new Error(`${check?.severity}`)
        return check?.ok ?? false
      }
      const askFor = async (names: string) => {
        await sql.unsafe(`alter system set synchronous_standby_names = '${names}'`)
        await sql`select pg_reload_conf()`
        await until('the setting', async () => {
          const [row] = await sql`show synchronous_standby_names`
          return row?.synchronousStandbyNames === names
        })
      }
      t.equal(await hasThem(), true, 'none is asked for')
      await askFor('s1')
      t.equal(await hasThem(), false, 'one is asked for, none is connected')
      const session = connect(url, { max: 1, settings: { synchronous_commit: 'local' } })
      await session`select api.record_heartbeat('process-that-commits', '{api}', 'here', 1, '1.2.3', now())`
      const [check] = await sql`select ok, hint from ops.checks where name = 'synchronous commits'`
      t.match(check, { ok: false, hint: /a\s+failover\s+loses\s+messages/ })
      await session`select api.deregister('process-that-commits')`
      await session.end()

      const standby = runPostgres(
        'pg_receivewal',
        `--dbname=${url}?application_name=s1`,
        `--directory=${folder}`,
        '--synchronous',
        '--no-loop',
      ).catch(() => 'ended')
      await until('a standby', hasThem)
      const lagging = async () => {
        const [row] = await sql<{ ok: boolean; severity: string | null }[]>`
        select ok, severity from ops.checks where name = 'standby lag'`
        return row?.ok ? null : row?.severity
      }
      t.equal(await lagging(), null, 'the standby keeps up')
      const [sender] = await sql<{ pid: number }[]>`select pid from pg_stat_replication`
      process.kill(sender?.pid ?? 0, 'SIGSTOP')
      // Each begins another file of 16 MB.
      for (let file = 1; file <= 5; file += 1) {
        await sql`select pg_logical_emit_message(false, 'test', 'x')`
        await sql`select pg_switch_wal()`
      }
      t.equal(await lagging(), 'warning', 'the standby has not stored the last 64 MB')
      process.kill(sender?.pid ?? 0, 'SIGCONT')
      await until('the standby to catch up', async () => (await lagging()) === null)
      await askFor('FIRST 2 (s1, s2)')
      t.equal(await hasThem(), false, 'two are asked for, one is connected')
      await askFor('ANY 1 (s1, s2)')
      t.equal(await hasThem(), true)
      await rolledBack(sql, async (tx) => {
        await tx`create role plain`
        await tx`alter function core.has_synchronous_standbys owner to plain`
        const [row] = await tx`select core.has_synchronous_standbys() as has`
        t.equal(row?.has, true, 'also for an owner who cannot read the state of standbys')
      })
      await askFor('')
      await sql`select pg_terminate_backend(pid) from pg_stat_replication`
      t.equal(await standby, 'ended')
    },
  )

  const { liveKey, domain } = await createOrganisation(sql)
  const send = (base: string, subject: string) =>
    post(`${base}/v1/emails`, liveKey, anEmail(domain, { to: 'someone@receiver.example', subject }))

  const api = await startTestService(url, { roles: ['api'] })
  const early = await send(api.base, 'before the base backup')
  const base = join(folder, 'base')
  await runPostgres('pg_basebackup', `--dbname=${url}`, `--pgdata=${base}`, '--checkpoint=fast')
  const late = await send(api.base, 'after the base backup')
  await sql`select pg_create_restore_point('before the accident')`
  await sql`truncate app.bodies`
  const lost = await send(api.base, 'after the accident')
  t.same([early.status, late.status, lost.status], [200, 200, 200])
  const [last] = await sql<{ file: string }[]>`select pg_walfile_name(pg_switch_wal()) as file`
  await until('the log to be archived', async () =>
    (await readdir(archive)).includes(last?.file ?? ''),
  )
  await api.stop()
  await live.stop()

  await writeFile(join(base, 'recovery.signal'), '')
  const restored = await startServer(base, [
    `restore_command = 'cp "${archive}/%f" "%p"'`,
    "recovery_target_name = 'before the accident'",
    "recovery_target_action = 'promote'",
  ])
  const again = restored.urlOf('postgres', 'postgres')
  const owner = connect(again, { max: 1 })
  t.teardown(() => owner.end())
  await until('recovery', async () => {
    const [row] = await owner`select pg_is_in_recovery() as is_going_on`
    return row?.isGoingOn === false
  })
  const provider = createStandIn()
  const service = await startTestService(again, { createEmailProvider: () => provider })
  await until('waiting messages to be sent', async () => provider.handed.length === 2)
  t.same(
    provider.emails.map(({ subject }) => subject).sort(),
    ['after the base backup', 'before the base backup'],
    'messages accepted up to that point are sent with their bodies',
  )
  for (const { json } of [early, late]) {
    t.equal((await get(`${service.base}/v1/emails/${json.id}`, liveKey)).status, 200)
  }
  t.equal((await get(`${service.base}/v1/emails/${lost.json.id}`, liveKey)).status, 404)
  // Requests are counted in an unlogged table: the count starts again at 0.
  t.equal((await send(service.base, 'new')).status, 200)
})
