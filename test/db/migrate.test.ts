import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect, type Sql } from '../../src/db/client.ts'
import { openEmbedded } from '../../src/db/embedded/index.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { recompile } from '../../src/db/migrate/replace-code.ts'
import { codeSha256, readFolder } from '../../src/db/migrate/sql-files.ts'
import { clusterUrl } from '../fixtures/cluster.ts'
import { catalogOf, createDatabase, rolledBack } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const cluster = await clusterUrl()
const admin = connect(cluster, { max: 1 })
t.teardown(() => admin.end())

const addressed = (url: string, changes: Partial<URL>) => Object.assign(new URL(url), changes).href

/** Returns an empty database and a connection of its owner. */
async function emptyDatabase(t: Test, server = admin, serverUrl = cluster, owner = '') {
  const name = `postgram_test_${randomUUID().replaceAll('-', '')}`
  await server.unsafe(`create database ${name} ${owner && `owner ${owner}`}`)
  const url = addressed(serverUrl, { pathname: `/${name}` })
  const sql = connect(url, { max: 2 })
  t.teardown(async () => {
    await sql.end()
    await server.unsafe(`drop database ${name} with (force)`)
  })
  return { url, sql, name }
}

/** Sends an email from the first key to the sandbox's report, as the service of that database. */
async function deliverOne(t: Test, url: string, sql: Sql) {
  const { base, stop } = await startTestService(url)
  const { liveKey, domain } = await createOrganisation(sql)
  const sent = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  t.equal(sent.status, 200, sent.text)
  await until('delivery', async () => {
    const [row] = await sql`
      select from ops.messages where id = ${sent.json.id} and status = 'delivered'`
    return row
  })
  await stop()
}

t.test('migrate: a new database gets all schemas and records its version', async (t) => {
  const { url, sql } = await emptyDatabase(t)
  await migrate(url)
  const schemas = await sql`
    select nspname as name from pg_namespace
    where nspname in ('app', 'core', 'api', 'ops', 'graphile_worker', 'pgboss') order by 1`
  t.same(
    schemas.map(({ name }) => name),
    ['api', 'app', 'core', 'graphile_worker', 'ops', 'pgboss'],
  )
  const applied = await sql`select id from app.migrations order by id`
  t.same(
    applied.slice(0, 4).map(({ id }) => id),
    ['0001_types', '0002_organisations', '0003_domains', '0004_templates'],
  )
  t.equal(await caller(sql)('health', {}), await codeSha256())
  const [partition] = await sql`
    select to_regclass('app.messages_' || to_char(now() at time zone 'UTC', 'YYYY_MM')) as name`
  t.ok(partition?.name, 'there is a place for the first message')
})

t.test('migrate: a second run changes no data', async (t) => {
  const { url, sql } = await createDatabase()
  const { id } = await createOrganisation(sql)
  const before = await catalogOf(sql)
  t.ok(before.length > 200)
  const applied = await sql`select * from app.migrations order by id`
  await migrate(url)
  const after = await catalogOf(sql)
  t.same(
    before.filter((line) => !after.includes(line)),
    [],
  )
  // If a day began meanwhile, migrate makes its partitions.
  const added = after.filter((line) => !before.includes(line))
  t.same(
    added.filter((line) => !/_\d{4}(_\d\d){1,2}/.test(line)),
    [],
  )
  t.same(await sql`select * from app.migrations order by id`, applied)
  t.equal((await sql`select from ops.organisations where id = ${id}`).length, 1)
})

t.test(
  'migrate: a second run creates the same code again and restores dropped objects',
  async (t) => {
    const { url, sql } = await createDatabase()
    const functions = () => sql<{ oid: number; name: string; source: string }[]>`
    select p.oid, p.oid::regprocedure::text as name, p.prosrc as source from pg_proc p
    where p.pronamespace in ('core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)
    order by 2`
    const before = await functions()
    await sql`drop function ops.help cascade`.catch(() => sql`drop view ops.help`)
    await sql`create function api.left_behind() returns text language sql as $$ select '' $$`
    await migrate(url, { clock: { 'postgram.shift': '0 seconds' } })
    const after = await functions()
    t.same(
      after.map(({ name, source }) => [name, source]),
      before.map(({ name, source }) => [name, source]),
    )
    t.notSame(after[0]?.oid, before[0]?.oid, 'it was replaced all the same')
    t.ok((await sql`select from ops.help`).length > 20)
  },
)

t.test('migrate: switches the test clock on with POSTGRAM_NOW and off without it', async (t) => {
  const { url, sql } = await emptyDatabase(t)
  const isShifted = async () => {
    const shifted = connect(url, { clock: { 'postgram.shift': '400 days' }, max: 1 })
    try {
      const [row] = await shifted`select core.now() > now() + interval '1 day' as is_shifted`
      t.equal((await sql`select api.has_test_clock() as is_on`)[0]?.isOn, row?.isShifted)
      return row?.isShifted
    } finally {
      await shifted.end()
    }
  }
  await migrate(url)
  t.equal(await isShifted(), false)
  await migrate(url, { clock: { 'postgram.shift': '1 hour' } })
  t.equal(await isShifted(), true)
  await migrate(url)
  t.equal(await isShifted(), false)
  const service = startTestService(url, { roles: ['api'], clock: { 'postgram.shift': '1 hour' } })
  await t.rejects(service, { message: /^POSTGRAM_NOW is set, but this database keeps real time/ })
})

t.test(
  'migrate: sets JIT and compression for its database, unless a setting is there',
  async (t) => {
    const { url, sql } = await createDatabase()
    const name = new URL(url).pathname.slice(1)
    const settings = async () => {
      const rows = await sql<{ setting: string }[]>`
      select unnest(s.setconfig) as setting from pg_db_role_setting s
      join pg_database d on d.oid = s.setdatabase where d.datname = current_database()`
      return rows.map(({ setting }) => setting).sort()
    }
    const [server] = await sql<{ hasLz4: boolean }[]>`
    select 'lz4' = any (enumvals) as has_lz4 from pg_settings where name = 'default_toast_compression'`
    const compression = server?.hasLz4 ? ['default_toast_compression=lz4'] : []
    await migrate(url)
    t.same(await settings(), [...compression, 'jit=off'])
    await sql.unsafe(`alter database ${name} set jit = on`)
    await sql.unsafe(`alter database ${name} set default_toast_compression = pglz`)
    await migrate(url)
    t.same(await settings(), ['default_toast_compression=pglz', 'jit=on'])
  },
)

t.test('migrate: refuses an applied migration whose file was changed', async (t) => {
  const { url, sql } = await createDatabase()
  const before = await catalogOf(sql)
  await sql`update app.migrations set sha256 = 'another' where id = '0003_domains'`
  await sql`drop view ops.help`
  await t.rejects(migrate(url), {
    message:
      'sql/migrations/0003_domains.sql was changed after it was applied; restore it and write a new migration',
  })
  t.same(await catalogOf(sql), before)
  t.same(
    await sql`select to_regclass('ops.help') as view`,
    [{ view: null }],
    'and leaves the code as it was',
  )
})

t.test(
  'migrate: a migration that fails leaves nothing behind and runs again next time',
  async (t) => {
    const { url, sql } = await emptyDatabase(t)
    await sql`create schema app`
    await sql`create type app.class as enum ('in the way')`
    await t.rejects(migrate(url), { code: '42710' })
    const applied = await sql`select id from app.migrations order by id`
    t.same([...applied], [], 'nor of those before it')
    t.same(await sql`select to_regclass('app.domains') as table`, [{ table: null }])
    await sql`drop type app.class`
    await migrate(url)
    t.equal(await caller(sql)('health', {}), await codeSha256())
  },
)

t.test('migrate: four at once migrate one new database', async (t) => {
  const { url, sql } = await emptyDatabase(t)
  await Promise.all([1, 2, 3, 4].map(() => migrate(url)))
  t.equal(await caller(sql)('health', {}), await codeSha256())
  const [twice] = await sql`
    select count(*)::integer as plans from app.plans where id = 'starter'`
  t.same(twice, { plans: 1 })
})

t.test(
  'migrate: databases of one server are migrated at once, although they share the roles',
  async (t) => {
    const all = await Promise.all([1, 2, 3].map(() => emptyDatabase(t)))
    await Promise.all(all.map(({ url }) => migrate(url)))
    for (const { sql } of all) t.equal(await caller(sql)('health', {}), await codeSha256())
  },
)

t.test('migrate: no call fails while the code is replaced, and no row is lost', async (t) => {
  const { url, sql } = await createDatabase()
  const { id, liveKey } = await createOrganisation(sql)
  const [key] = await sql<{ sha256: string }[]>`
    select encode(sha256(convert_to(${liveKey}, 'UTF8')), 'hex') as sha256`
  const [organisation] = await sql<{ id: string }[]>`select core.decode_id('org', ${id}) as id`
  const pool = connect(url, { role: 'postgram_service', max: 4 })
  t.teardown(() => pool.end())
  const call = caller(pool)

  let isReplacing = true
  let calls = 0
  const failures: unknown[] = []
  const callers = [
    () => call('admit', { keys: [String(key?.sha256)] }),
    () => call('start_emails', { ids: [randomUUID()] }),
    () => call('health', {}),
    () =>
      call('get_message', {
        organisation_id: String(organisation?.id),
        channel: 'email',
        id: 'em_',
      }),
  ].map(async (one) => {
    while (isReplacing) {
      await one().catch((error) => failures.push(error))
      calls += 1
    }
  })
  for (let round = 0; round < 5; round += 1) await migrate(url)
  isReplacing = false
  await Promise.all(callers)
  t.same(failures, [])
  t.ok(calls > 20, `${calls} calls`)
  t.equal((await sql`select from ops.api_keys where organisation = ${id}`).length, 2)
})

t.test('migration 0028: what the sandbox took and what it will report stay', async (t) => {
  const { sql } = await createDatabase()
  const textOf = (id: string) =>
    readFolder('migrations').find(({ name }) => name.includes(`/${id}_`))?.text ?? ''
  await rolledBack(sql, async (tx) => {
    await tx.unsafe(`
      drop table app.sandbox_batches, app.sandbox_reports;
      alter table app.status_changes drop column message_ids, alter column message_id set not null`)
    await tx.unsafe(textOf('0018'))
    // Of 150 emails, 120 still have reports; one was taken twice.
    await tx`
      insert into app.sandbox_messages (message_id, copy, kind, attempts, reports, taken_at, due_at)
      select core.new_id(now()), n % 3, 'email', case n when 1 then 2 else 1 end, jsonb_build_array(n, -n), now(),
        case when n <= 120 then now() end
      from generate_series(1, 150) n`
    await tx`
      insert into app.sandbox_messages (message_id, copy, kind, reports, taken_at, due_at)
      values (core.new_id(now()), 0, 'reply', '["a reply"]', now(), now())`
    const before = await tx`select message_id, copy, attempts from app.sandbox_messages order by 1`
    await tx.unsafe(textOf('0028'))
    const after = await tx`
      select message_id, copy, attempts from ${takenBySandbox(tx)} s order by 1`
    t.same([...after], [...before])
    const reports = await tx<{ kind: string; reports: unknown }[]>`
      select s.kind, m.reports
      from app.sandbox_reports s
      cross join jsonb_array_elements(s.reports) as m (reports)
      order by s.kind, (m.reports ->> 1)::integer desc`
    const emails = Array.from({ length: 120 }, (_, place) => [place + 1, -place - 1])
    t.same(
      [...reports],
      [
        ...emails.map((reports) => ({ kind: 'email', reports })),
        { kind: 'reply', reports: ['a reply'] },
      ],
    )
  })
})

t.test(
  'migrate: a session that compiled a function with a former type compiles it again',
  async (t) => {
    const { url, sql } = await createDatabase()
    const session = connect(url, { max: 1 })
    t.teardown(() => session.end())
    await sql.unsafe(`
    create type core.former as (a integer);
    create function core.of_former() returns integer language plpgsql as
    'declare v core.former := row(1)::core.former; begin return v.a; end'`)
    const call = () => session`select core.of_former() as a`
    t.same([...(await call())], [{ a: 1 }])
    await sql.unsafe('drop type core.former; create type core.former as (a integer)')
    await t.rejects(call(), { code: /^(XX000|42...)$/ }, 'it keeps the former type')
    await sql.unsafe(recompile)
    t.same([...(await call())], [{ a: 1 }])
  },
)

t.test('migrate: a migration that waits for a lock blocks no call', async (t) => {
  const { url, sql } = await createDatabase()
  const reader = connect(url, { max: 1, applicationName: 'a report' })
  t.teardown(() => reader.end())
  let migrating: Promise<void> | undefined
  await reader.begin(async (tx) => {
    await tx`select from ops.organisations`
    await t.rejects(migrate(url, { lockAttempts: 1 }), {
      message:
        /^migrate could not get its lock; the oldest transaction is that of process \d+ \(a report\), since \d\d:\d\d:\d\d\. Nothing was changed\.$/,
    })
    migrating = migrate(url)
    await until('it to wait', async () => {
      const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and application_name = 'postgram migrate' and wait_event_type = 'Lock'`
      return row
    })
    // migrate waits for the lock for 500 ms at most, then tries again.
    t.same(await sql`select from ops.organisations`, [])
  })
  await migrating
  t.equal(await caller(sql)('health', {}), await codeSha256())
})

t.test('migrate: an upgrade of the queue that waits for a lock blocks no call', async (t) => {
  const { url, sql } = await createDatabase()
  await sql`delete from graphile_worker.migrations where id = 20`
  const reader = connect(url, { max: 1, applicationName: 'a report' })
  t.teardown(() => reader.end())
  await reader.begin(async (tx) => {
    await tx`lock table graphile_worker.migrations in share mode`
    await t.rejects(migrate(url, { lockAttempts: 1 }), {
      message:
        /^migrate could not get its lock; .* \(a report\), .* The last step of the queues' own upgrade is missing: run migrate again\.$/,
    })
  })
  await migrate(url)
  t.same(await sql`select max(id) as id from graphile_worker.migrations`, [{ id: 20 }])
})

t.test('migrate: waits for another process that makes partitions', async (t) => {
  const { url } = await createDatabase()
  const clock = connect(url, { max: 1, applicationName: 'a clock' })
  t.teardown(() => clock.end())
  await clock.begin(async (tx) => {
    await tx`select api.make_partitions()`
    await t.rejects(migrate(url, { lockAttempts: 1 }), {
      message:
        /^migrate could not get its lock; .* The database is of this version, but may lack partitions and reports over cells: run migrate again\.$/,
    })
  })
  await migrate(url)
})

t.test('migrate: a running service of the same version goes on', async (t) => {
  const { url, sql } = await createDatabase()
  const { base } = await startTestService(url)
  const { liveKey, domain } = await createOrganisation(sql)
  const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain))
  const before = await send()
  await migrate(url)
  const after = await send()
  t.same([before.status, after.status], [200, 200])
  await until('both deliveries', async () => {
    const delivered = await sql`select from ops.messages where status = 'delivered'`
    return delivered.length === 2
  })
})

t.test('migrate: an owner without superuser rights migrates a new server', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-owner-'))
  // Under root, user postgres must be able to enter it.
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  const server = await openEmbedded(join(folder, 'data'), { postgresFlags: ['-c', 'fsync=off'] })
  t.teardown(() => server.close())
  const superuser = connect(server.url, { max: 1 })
  await superuser`create role managed login createrole createdb password 'managed'`
  await superuser`create database managed owner managed`
  await superuser.end()

  const url = addressed(server.url, {
    username: 'managed',
    password: 'managed',
    pathname: '/managed',
  })
  const sql = connect(url, { max: 2 })
  await migrate(url)
  await migrate(url)
  await deliverOne(t, url, sql)
  const [row] = await sql`
    select rolsuper as is_super, (select count(*)::integer from ops.checks where ok) as well
    from pg_roles where rolname = current_user`
  t.match(row, { isSuper: false })
  await sql.end()
})

t.test(
  'migrate: names the grants for an owner without superuser rights if the roles exist',
  async (t) => {
    const owner = `postgram_owner_${randomUUID().slice(0, 8)}`
    const password = randomUUID()
    await admin.unsafe(`create role ${owner} login password '${password}'`)
    // Teardowns run in reverse order: first the database is dropped, then the role.
    t.teardown(() => admin.unsafe(`drop role ${owner}`))
    const { url: adminsUrl } = await emptyDatabase(t, admin, cluster, owner)
    const url = addressed(adminsUrl, { username: owner, password })
    const roles = 'postgram_service, postgram_operator, postgram_report'
    await t.rejects(migrate(url), {
      code: '42501',
      message: new RegExp(
        `^the roles of Postgram need a superuser: .*"grant ${roles} to ${owner}"$`,
      ),
    })
    await admin.unsafe(`grant ${roles} to ${owner}`)
    const sql = connect(url, { max: 2 })
    await migrate(url)
    await deliverOne(t, url, sql)
    await sql.end()
  },
)
