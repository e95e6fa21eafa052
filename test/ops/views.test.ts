import { readdir } from 'node:fs/promises'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { url, sql } = await createDatabase()

const files = await readdir(new URL('../../sql/ops/', import.meta.url))
const names = files
  .map((file) => file.replace(/(_function)?\.sql$/, ''))
  .filter((name) => name !== 'grants')
  .sort()

t.test('ops.help: lists every object of ops with a description', async (t) => {
  const help = await sql<{ usage: string; description: string }[]>`select * from ops.help`
  t.same(help.map(({ usage }) => usage.replace(/\([\s\S]*/, '')).sort(), names)
  for (const { usage, description } of help) t.match(description, /^[A-Z][\s\S]{10,}\.$/, usage)
})

t.test('every column of every view of ops has a comment', async (t) => {
  const columns = await sql<{ name: string; what: string | null }[]>`
    select format('%s.%s', c.relname, a.attname) as name, col_description(c.oid, a.attnum) as what
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'ops'::regnamespace and c.relkind in ('v', 'r')`
  t.ok(columns.length > 200)
  for (const { name, what } of columns) t.match(what, /^\S.+\.$/, name)
})

t.test('every view of ops can be read with and without data', async (t) => {
  const views = await sql<
    { name: string }[]
  >`select relname as name from pg_class where relnamespace = 'ops'::regnamespace and relkind = 'v'`
  t.ok(views.length >= 12)
  for (const { name } of views) t.ok(await sql.unsafe(`select * from ops.${name}`), name)
  const { id } = await createOrganisation(sql)
  await sql`select ops.create_template(${id}, 'Hello', 'Hello {{a}}', '{{b}}', null)`
  for (const { name } of views) t.ok(await sql.unsafe(`select * from ops.${name}`), name)
})

type Check = { name: string; ok: boolean; severity: string | null; hint: string | null }

const checks = async (tx: Tx) => {
  const rows = await tx<Check[]>`select * from ops.checks`
  return new Map(rows.map((row) => [row.name, row]))
}
const ill = async (tx: Tx) =>
  [...(await checks(tx)).values()].filter(({ ok }) => !ok).map(({ name }) => name)

t.test(
  'ops.checks: worker and clock fail until they run, and only failed checks have a hint',
  async (t) => {
    const session = connect(url, { max: 1, settings: { synchronous_commit: 'on' } })
    t.teardown(() => session.end())
    await rolledBack(sql, async (tx) => {
      t.same(await ill(tx), ['worker', 'clock'])
      for (const { name, ok, hint, severity } of (await checks(tx)).values()) {
        if (ok) t.match({ hint, severity }, { hint: null, severity: null }, name)
        else t.match({ hint, severity }, { hint: /\w+ \w+/, severity: 'problem' }, name)
      }
    })
    await session`select api.record_heartbeat('checked-process', '{api,worker,clock}', 'here', 1, '1.2.3', now())`
    await rolledBack(sql, async (tx) => {
      t.same(await ill(tx), [])
      await tx`update app.processes set heartbeat_at = now() - interval '31 seconds'`
      t.same(await ill(tx), ['heartbeats'])
    })
    await session`select api.deregister('checked-process')`
  },
)

t.test('ops.checks: warns of processes of several versions', async (t) => {
  const one = connect(url, { max: 1 })
  const other = connect(url, { max: 1 })
  t.teardown(() => Promise.all([one.end(), other.end()]))
  await one`select api.record_heartbeat('process-of-one', '{api}', 'here', 1, '1.2.3', now())`
  await rolledBack(sql, async (tx) => {
    t.equal((await checks(tx)).get('versions')?.ok, true)
    await other`select api.record_heartbeat('process-of-other', '{api}', 'here', 2, '1.2.4', now())`
    t.match((await checks(tx)).get('versions'), { ok: false, severity: 'warning' })
    t.match(
      [...(await tx`select version from ops.processes order by pid`)],
      [{ version: '1.2.3' }, { version: '1.2.4' }],
    )
    await other`select api.deregister('process-of-other')`
    t.equal((await checks(tx)).get('versions')?.ok, true)
  })
  await one`select api.deregister('process-of-one')`
})

t.test("ops.checks: warns of a clock that differs from the database's by over 5 s", async (t) => {
  const session = connect(url, { max: 1 })
  t.teardown(() => session.end())
  const measured = async (ahead: string) => {
    await session`
      select api.record_heartbeat('process-with-clock', '{api}', 'here', 1, '1.2.3', clock_timestamp() + ${ahead}::interval)`
    const [row] = await sql<{ seconds: number }[]>`
      select extract(epoch from clock_offset)::float8 as seconds from ops.processes`
    const check = await sql<Check[]>`select * from ops.checks where name = 'clocks'`
    return { seconds: row?.seconds ?? Number.NaN, check: check[0] }
  }
  t.match(await measured('4 seconds'), { check: { ok: true } })
  const ahead = await measured('90 seconds')
  t.ok(Math.abs(ahead.seconds - 90) < 1, `${ahead.seconds} s`)
  t.match(ahead.check, { ok: false, severity: 'warning', hint: /receivers\s+refuse webhooks/ })
  const behind = await measured('-90 seconds')
  t.ok(Math.abs(behind.seconds + 90) < 1, `${behind.seconds} s`)
  t.equal(behind.check?.ok, false)
  t.equal((await measured('-10 years')).seconds, -86_400, 'the measure is bounded by a day')
  await session`select api.deregister('process-with-clock')`
  t.equal((await sql<Check[]>`select * from ops.checks where name = 'clocks'`)[0]?.ok, true)
})

t.test('ops.checks: finds processes whose commits do not wait for the disk', async (t) => {
  for (const [setting, ok] of Object.entries({ off: false, local: true, on: true })) {
    const session = connect(url, { max: 1, settings: { synchronous_commit: setting } })
    await session`select api.record_heartbeat('process-that-commits', '{api}', 'here', 1, '1.2.3', now())`
    const [check] = await sql<Check[]>`select * from ops.checks where name = 'synchronous commits'`
    t.match(
      check,
      ok
        ? { ok, hint: null }
        : { ok, severity: 'problem', hint: /a\s+crash\s+of\s+the\s+server\s+loses\s+messages/ },
    )
    t.match(
      [...(await sql`select synchronous_commit from ops.processes`)],
      [{ synchronousCommit: setting }],
    )
    await session`select api.deregister('process-that-commits')`
    await session.end()
  }
})

t.test('ops.checks: finds missing partitions and a failing provider', async (t) => {
  await rolledBack(sql, async (tx) => {
    const before = await ill(tx)
    await tx`insert into app.provider_health (provider, failing_since, last_error) values ('another', now(), 'is down')`
    t.same(
      (await ill(tx)).filter((name) => !before.includes(name)),
      ['provider'],
    )
    t.same(
      [...(await tx`select provider, last_error from ops.failing_providers`)],
      [{ provider: 'another', lastError: 'is down' }],
    )
    await tx`select set_config('postgram.shift', '200 days', true)`
    t.ok((await ill(tx)).includes('partitions'))
    await tx`select api.make_partitions()`
    t.notOk((await ill(tx)).includes('partitions'))
    const ahead = await tx<{ parent: string; name: string }[]>`
      select p.parent, p.name from core.partitions() p
      where p.span_from <= core.now() + interval '20 days' and p.span_to > core.now() + interval '20 days'`
    t.equal(ahead.length, 7)
    for (const { parent, name } of ahead) {
      await tx`drop table ${tx(`app.${name}`)}`
      t.ok((await ill(tx)).includes('partitions'), parent)
      await tx`select api.make_partitions()`
      t.notOk((await ill(tx)).includes('partitions'), parent)
    }
  })
})

t.test('ops.processes: a process is alive while it holds its lock', async (t) => {
  const session = connect(url, { max: 1 })
  await session`select api.record_heartbeat('living-process', '{api}', 'a-host', 4242, '1.2.3', now())`
  await sql`
    insert into app.processes (pool_id, roles, host, pid, version, clock_offset, synchronous_commit)
    values ('gone-process', '{worker}', 'here', 1, '1.2.3', '0', 'on')`
  t.match(
    [...(await sql`select * from ops.processes order by pool`)],
    [
      { pool: 'gone-process', roles: ['worker'], isAlive: false },
      {
        pool: 'living-process',
        roles: ['api'],
        host: 'a-host',
        pid: 4242,
        heartbeatAt: Date,
        isAlive: true,
      },
    ],
  )
  await session`select api.deregister('living-process')`
  await session.end()
  t.match([...(await sql`select * from ops.processes`)], [{ pool: 'gone-process' }])
  await sql`delete from app.processes`
})

t.test('ops.processes: ignores locks of other databases on the server', async (t) => {
  const other = await createDatabase()
  const session = connect(other.url, { max: 1 })
  await session`select api.record_heartbeat('twin-process', '{worker}', 'here', 1, '1.2.3', now())`
  await sql`
    insert into app.processes (pool_id, roles, host, pid, version, clock_offset, synchronous_commit)
    values ('twin-process', '{worker}', 'here', 1, '1.2.3', '0', 'on')`
  t.match([...(await other.sql`select * from ops.processes`)], [{ isAlive: true }])
  t.match([...(await sql`select * from ops.processes`)], [{ isAlive: false }])
  await session.end()
  await sql`delete from app.processes`
})

t.test('ops.organisations: shows usage, allowances and waiting messages', async (t) => {
  const { id } = await createOrganisation(sql, { emailsIncluded: 500 })
  await rolledBack(sql, async (tx) => {
    await tx`
      update app.allowances set emails_used = 20, messages_accepted = 15
      where organisation_id = core.decode_id('org', ${id})`
    await tx`update app.counters set messages_dequeued = 12 where organisation_id = core.decode_id('org', ${id})`
    const [row] = await tx`select * from ops.organisations where id = ${id}`
    t.match(row, {
      plan: 'plan-500',
      emailsUsed: 20,
      emailsIncluded: 500,
      messagesWaiting: '3',
      periodEnd: Date,
    })
  })
})
