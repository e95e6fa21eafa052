import t, { type Test } from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { copyVersion } from '../fixtures/deployment.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { noPostgres, startDatabaseProxy } from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { DATABASE, startCell, type TestCell } from './cells.ts'

const DENIED = '42501'
const PASSWORD = 'of-the-other-cell'

/** A connection to a cell for one of its roles. */
function connectAs(t: Test, { server }: TestCell, role: string, database = DATABASE) {
  const sql = connect(server.urlOf(role, database), { max: 1 })
  t.teardown(() => sql.end())
  return sql
}

/** The schemas and foreign servers that join creates for reports. */
const madeIn = async ({ sql }: TestCell) => {
  const rows = await sql<{ name: string }[]>`
    select nspname::text as name from pg_namespace where nspname ~ '^(everywhere|cell_)'
    union all
    select srvname from pg_foreign_server
    union all
    select srvname || ' as ' || usename from pg_user_mappings
    order by 1`
  return rows.map(({ name }) => name)
}

const ofCell = (number: number) => [
  `cell_${number}`,
  'everywhere',
  `postgram_cell_${number}`,
  `postgram_cell_${number} as postgres`,
]

/** The number and name of each organisation that a cell finds everywhere. */
const organisationsFrom = async ({ sql }: TestCell, condition = 'true') => {
  const rows = await sql.unsafe<{ cell: number; name: string }[]>(
    `select cell, name from everywhere.organisations where ${condition} order by cell, name`,
  )
  return rows.map(({ cell, name }) => `${cell} ${name}`)
}

t.test('everywhere: reports over two cells', { skip: noPostgres }, async (t) => {
  const first = await startCell(1)
  const second = await startCell(2)
  const withPassword = second.url.replace('postgres@', `postgres:${PASSWORD}@`)
  await first.sql`create role bob login in role postgram_report`
  await first.sql`create role alice login in role postgram_operator`
  t.match(await first.run('join', withPassword), { code: 0, stdout: /^Joined cell 2.*\n$/ })
  t.match(await second.run('join', first.url), { code: 0 })
  const report = connectAs(t, first, 'bob')

  const [acme, bolt] = [
    await createOrganisation(first.sql, { name: 'Acme' }),
    await createOrganisation(second.sql, { name: 'Bolt' }),
  ]
  for (const [cell, organisation, emails] of [
    [first, acme, 2],
    [second, bolt, 3],
  ] as const) {
    const { base, stop } = await startTestService(cell.url, { roles: ['api'] })
    for (let n = 0; n < emails; n += 1) await send(base, organisation)
    await stop()
    await caller(cell.sql)('sum_status_changes', {})
  }

  t.test('everywhere.organisations: shows those of both cells in each cell', async (t) => {
    for (const cell of [first, second]) {
      t.same(await organisationsFrom(cell), ['1 Acme', '2 Bolt'])
    }
  })

  t.test('everywhere.daily_volume: sums messages over both cells', async (t) => {
    const volumes = await report`
      select cell, sum(accepted)::integer as accepted from everywhere.daily_volume
      where tag is null and channel = 'email' group by rollup (cell) order by cell nulls last`
    t.same(
      [...volumes],
      [
        { cell: 1, accepted: 2 },
        { cell: 2, accepted: 3 },
        { cell: null, accepted: 5 },
      ],
    )
  })

  t.test('postgram_report: reads in every view what the other cell has', async (t) => {
    const views = await first.sql<{ name: string }[]>`
      select relname as name from pg_class where relnamespace = 'everywhere'::regnamespace`
    t.ok(views.length > 20)
    for (const { name } of views) {
      const [there] = await report.unsafe(
        `select jsonb_agg(to_jsonb(v) - 'cell' order by to_jsonb(v)::text) as rows
        from everywhere.${name} v where cell = 2`,
      )
      const [own] = await second.sql.unsafe(
        `select jsonb_agg(to_jsonb(v) order by to_jsonb(v)::text) as rows from ops.${name} v`,
      )
      t.same(there, own, name)
    }
  })

  t.test('everywhere: logins read through its views only, without the password', async (t) => {
    const operator = connectAs(t, first, 'alice')
    await first.sql`create role service login in role postgram_service`
    const service = connectAs(t, first, 'service')
    for (const sql of [report, operator]) {
      t.equal((await sql`select from everywhere.organisations`).length, 2)
      t.same([...(await sql`select umoptions from pg_user_mappings`)], [{ umoptions: null }])
      await t.rejects(sql`select from cell_2.organisations`, { code: DENIED })
      await t.rejects(sql`delete from everywhere.organisations`, { code: '55000' })
    }
    t.same([...(await service`select umoptions from pg_user_mappings`)], [{ umoptions: null }])
    await t.rejects(service`select from everywhere.organisations`, { code: DENIED })
    await t.rejects(service`select from cell_2.organisations`, { code: DENIED })
    const [row] = await first.sql`
      select array_to_string(umoptions, ' ') as mapping, array_to_string(srvoptions, ' ') as server
      from pg_user_mappings join pg_foreign_server s on s.oid = srvid`
    t.match(row?.mapping, `password=${PASSWORD}`)
    t.notMatch(row?.server, PASSWORD)
  })

  t.test('migrate: creates the views again', async (t) => {
    const [before] = await first.sql`select 'everywhere.organisations'::regclass::oid as view`
    t.same(await first.run('migrate'), { code: 0, stdout: '', stderr: '' })
    const [after] = await first.sql`select 'everywhere.organisations'::regclass::oid as view`
    t.not(after?.view, before?.view)
    t.same(await organisationsFrom(first), ['1 Acme', '2 Bolt'])
    t.equal((await report`select from everywhere.organisations`).length, 2)
  })

  t.test('join: another address of the cell replaces the server and the mapping', async (t) => {
    const proxy = await startDatabaseProxy(second.url)
    t.match(await first.run('join', proxy.url), { code: 0, stdout: /^Joined cell 2.*\n$/ })
    const before = proxy.connections()
    t.same(await organisationsFrom(first), ['1 Acme', '2 Bolt'])
    t.equal(proxy.connections(), before + 1)
    t.same(await madeIn(first), ofCell(2))

    t.comment('a cell that accepts connections and does not respond')
    proxy.set('stall')
    await t.rejects(report`select from everywhere.organisations`, {
      message: /could not connect to server "postgram_cell_2"/,
    })
    proxy.set('pass')
    t.equal((await report`select from everywhere.organisations`).length, 2)
    t.match(await first.run('join', second.url), { code: 0 })
  })

  t.test('join: a lesser login of the other cell suffices for the mapping', async (t) => {
    await second.sql`create role reader login in role postgram_report`
    await first.sql`
      alter user mapping for current_user server postgram_cell_2 options (set user 'reader')`
    t.same(await organisationsFrom(first), ['1 Acme', '2 Bolt'])
  })

  t.test('migrate to a later version: its column needs the upgrade of each cell', async (t) => {
    const next = await copyVersion()
    // Foreign tables would keep a migration from changing types.
    await next.add(
      'migrations/9998_next.sql',
      `do $$
      begin
        if exists (select from pg_foreign_table) then
          raise 'foreign tables exist';
        end if;
      end $$`,
    )
    await next.replace(
      'p.test_messages_daily, count',
      "p.test_messages_daily, 'af' as region, count",
    )
    t.same(await next.run(['migrate'], first.url), { code: 0, stdout: '', stderr: '' })
    const names = await report`select id from everywhere.plans where cell = 2`
    t.ok(names.length > 0)
    const regions = () => report`select region from everywhere.plans where cell = 2`
    await t.rejects(regions(), { message: 'column "region" does not exist' })
    t.same(await next.run(['migrate'], second.url), { code: 0, stdout: '', stderr: '' })
    t.equal((await regions()).length, names.length)
  })

  const third = await startCell(3)
  t.test('join: a third cell joins the others in every view', async (t) => {
    await createOrganisation(third.sql, { name: 'Core' })
    t.match(await first.run('join', third.url), { code: 0 })
    t.same(await organisationsFrom(first), ['1 Acme', '2 Bolt', '3 Core'])
  })

  t.test('everywhere: names the server of a cell that is away; a condition omits it', async (t) => {
    await third.server.stop()
    const away = { message: /could not connect to server "postgram_cell_3"/ }
    await t.rejects(report`select from everywhere.organisations`, away)
    t.same(await organisationsFrom(first, 'cell <> 3'), ['1 Acme', '2 Bolt'])
    t.same(await organisationsFrom(first, 'cell = 1'), ['1 Acme'])
  })

  t.test('leave: drops the reports of a cell and keeps those of the others', async (t) => {
    t.match(await first.run('leave', '3', '--force'), { code: 0 })
    t.same(await madeIn(first), ofCell(2))
    t.same(await organisationsFrom(first), ['1 Acme', '2 Bolt'])
    t.match(await first.run('leave', '2'), { code: 0 })
    t.same(await madeIn(first), [])
  })
})

t.test(
  'join: run by a superuser, it lets an owner who is none read everywhere and migrate',
  { skip: noPostgres },
  async (t) => {
    const [there, here] = [await startCell(1), await startCell(2)]
    await createOrganisation(there.sql, { name: 'Acme' })
    await here.sql`create role keeper login createrole`
    await here.sql`grant postgram_service, postgram_operator, postgram_report to keeper`
    await here.sql`create database kept owner keeper`
    const keeper = connectAs(t, here, 'keeper', 'kept')
    const asKeeper = { DATABASE_URL: here.server.urlOf('keeper', 'kept') }
    const asSuperuser = { DATABASE_URL: here.server.urlOf('postgres', 'kept') }
    t.match(await runCommand(['migrate'], asKeeper), { code: 0 })
    await keeper`select ops.set_cell(2, 'kept')`
    t.match(await runCommand(['join', there.url], asSuperuser), {
      code: 0,
      stdout: /^Joined cell 1.*\n$/,
    })
    const names = () => keeper`select cell, name from everywhere.organisations`
    t.same([...(await names())], [{ cell: 1, name: 'Acme' }])
    t.match(await runCommand(['migrate'], asKeeper), { code: 0 })
    t.same([...(await names())], [{ cell: 1, name: 'Acme' }])
    t.match(await runCommand(['leave', '1'], asSuperuser), { code: 0 })
    t.same([...(await keeper`select from pg_namespace where nspname = 'everywhere'`)], [])
  },
)

t.test(
  'join: without postgres_fdw shares the lists and says what is missing',
  { skip: noPostgres },
  async (t) => {
    const [here, there] = [await startCell(1), await startCell(2)]
    // As a server does that has not got it.
    await here.sql.unsafe(`
    create function public.refuse() returns event_trigger language plpgsql as $$
    begin
      raise feature_not_supported using message = 'extension "postgres_fdw" is not available';
    end $$;
    create event trigger refuse on ddl_command_start when tag in ('CREATE EXTENSION')
      execute function public.refuse()`)
    const joined = await here.run('join', there.url)
    t.match(joined, {
      code: 0,
      stdout:
        /^Joined cell 2.*\nReports over all cells are missing \(extension "postgres_fdw" is not available/,
    })
    t.same(await madeIn(here), [])
    t.match([...(await here.sql`select number from ops.cells order by 1`)], [{}, { number: 2 }])
    t.match(await here.run('migrate'), { code: 0 })
    t.same(await madeIn(here), [])
    await here.sql`drop event trigger refuse`
    t.match(await here.run('join', there.url), { code: 0, stdout: /^Joined cell 2.*\n$/ })
    t.same(await madeIn(here), ofCell(2))
  },
)
