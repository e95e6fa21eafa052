import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t from 'tap'
import { planSettings } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { prepareOpsCalls, type Value } from '../fixtures/load.ts'

const { url, sql } = await createDatabase()
const { right } = await prepareOpsCalls(url, sql)
const database = new URL(url).pathname.slice(1)

const ROLES = ['postgram_report', 'postgram_operator', 'postgram_service'] as const
type Role = (typeof ROLES)[number]

/** Returns a connection of a login that is only a member of the role, and the notices that it received. */
async function login(role: Role) {
  const name = `attacker_${randomUUID().replaceAll('-', '')}`
  await sql.unsafe(`create role ${name} login in role ${role}`)
  const notices: string[] = []
  const session = postgres(url, {
    max: 1,
    connection: planSettings as object,
    onnotice: ({ message }) => notices.push(String(message)),
  })
  t.teardown(async () => {
    await session.end()
    await sql.unsafe(`drop owned by ${name}`)
    await sql.unsafe(`drop role ${name}`)
  })
  await session.unsafe(`set session authorization ${name}`)
  return { name, session, notices }
}

/** If it runs as another role than the login, it raises a notice and tries to make the login a superuser. */
const attack = `
  create function pg_temp.attack() returns pg_catalog.bool language plpgsql as $$
  begin
    if current_user <> session_user then
      raise notice 'attack ran as %', current_user;
      begin
        execute pg_catalog.format('alter role %I superuser', session_user);
      exception when others then null;
      end;
    end if;
    return true;
  end $$`

/** Returns objects of all kinds that call the attack, with names that the code of Postgram uses. */
async function shadows(): Promise<string[]> {
  const types = await sql<{ name: string; base: string }[]>`
    select t.typname as name, case t.typnamespace when 'pg_catalog'::regnamespace then t.typname else 'text' end as base
    from pg_type t
    where t.typtype in ('b', 'e', 'd') and t.typelem = 0 and t.typnamespace = 'pg_catalog'::regnamespace
      and t.typname in ('text', 'json', 'jsonb', 'uuid', 'timestamptz', 'timestamp', 'date', 'time', 'interval', 'bytea',
        'int2', 'int4', 'int8', 'bool', 'numeric', 'float8', 'name', 'varchar', 'oid', 'regclass', 'regnamespace', 'inet')
      or t.typtype = 'e' and t.typnamespace = 'app'::regnamespace`
  const tables = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c
    where c.relnamespace in ('app'::regnamespace, 'ops'::regnamespace, 'graphile_worker'::regnamespace)
      and c.relkind in ('r', 'p', 'v') and not c.relispartition`
  const catalogs = [
    'pg_class',
    'pg_proc',
    'pg_stat_activity',
    'pg_locks',
    'pg_inherits',
    'pg_database',
    'pg_type',
  ]
  const views = catalogs.map(
    (name) =>
      `create view pg_temp.${name} as select x.*, pg_temp.attack() as attacked from pg_catalog.${name} x`,
  )
  return [
    attack,
    ...views,
    // Defaults and checks run when code writes to one of these in place of the table of Postgram.
    ...[...new Set(tables.map(({ name }) => name))].map(
      (name) =>
        `create table pg_temp.${name} (id pg_catalog.uuid, attacked pg_catalog.bool default pg_temp.attack() check (pg_temp.attack()))`,
    ),
    `create function pg_temp.now() returns pg_catalog.timestamptz language sql as $$ select pg_catalog.now() where pg_temp.attack() $$`,
    `create function pg_temp.format(pg_catalog.text, variadic pg_catalog.text[]) returns pg_catalog.text language sql
      as $$ select 'mine'::pg_catalog.text where pg_temp.attack() $$`,
    `create function pg_temp.same(pg_catalog.text, pg_catalog.text) returns pg_catalog.bool language sql as $$ select pg_temp.attack() $$`,
    'create operator pg_temp.= (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = pg_temp.same)',
    'create operator pg_temp.|| (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = pg_temp.same)',
    "create type pg_temp.mood as enum ('x')",
    `create function pg_temp.as_text(pg_temp.mood) returns pg_catalog.text language sql as $$ select 'x'::pg_catalog.text where pg_temp.attack() $$`,
    'create cast (pg_temp.mood as pg_catalog.text) with function pg_temp.as_text(pg_temp.mood) as implicit',
    // These are last, because every statement after them would use them.
    ...types.map(
      ({ name, base }) =>
        `create domain pg_temp.${name} as pg_catalog.${base} check (pg_temp.attack())`,
    ),
  ]
}

const literal = (value: Value) =>
  Array.isArray(value)
    ? `'{${value.join(',')}}'`
    : typeof value === 'string'
      ? `'${value.replaceAll("'", "''")}'`
      : String(value)

/** Returns statements that the role may run: every view, every function with dummy arguments, some with valid ones. */
async function statementsOf(role: Role): Promise<string[]> {
  const views = await sql<{ text: string }[]>`
    select format('select * from %s', c.oid::regclass) as text
    from pg_class c
    where c.relnamespace = 'ops'::regnamespace and c.relkind in ('v', 'r') and has_table_privilege(${role}, c.oid, 'select')`
  const functions = await sql<{ text: string }[]>`
    select format('select * from %s(%s)', p.oid::regproc, (
      select string_agg(case
          when a.oid = 'text'::regtype then '''x'''
          when a.oid = 'jsonb'::regtype then '''[]'''
          when a.oid = 'text[]'::regtype then '''{x}'''
          when a.oid = 'boolean'::regtype then 'true'
          when a.oid in ('integer'::regtype, 'bigint'::regtype) then '1'
          else 'null' end, ', ' order by a.place)
      from unnest(p.proargtypes) with ordinality a (oid, place))) as text
    from pg_proc p
    where p.pronamespace in ('ops'::regnamespace, 'api'::regnamespace) and has_function_privilege(${role}, p.oid, 'execute')`
  const calls =
    role === 'postgram_operator'
      ? Object.entries(right).map(
          ([name, values]) => `select * from ops.${name}(${values.map(literal).join(', ')})`,
        )
      : []
  const casts = ["ops.why('x'::pg_temp.mood)", "api.get_message(null, 'x'::pg_temp.mood)"]
  return [
    ...views.map(({ text }) => text),
    ...functions.map(({ text }) => text),
    ...calls,
    ...casts.map((call) => `select ${call}`),
  ]
}

const isSuperuser = async (name: string) =>
  (await sql`select rolsuper from pg_roles where rolname = ${name}`)[0]?.rolsuper

/** Runs each statement and rolls it back; returns how many succeeded. */
async function runAll(session: postgres.Sql, statements: string[]): Promise<number> {
  let done = 0
  for (const statement of statements) {
    await session.unsafe('begin')
    done += await session.unsafe(statement).then(
      () => 1,
      () => 0,
    )
    await session.unsafe('rollback')
  }
  return done
}

for (const role of ROLES) {
  t.test(`${role} cannot create temporary objects`, async (t) => {
    const { session } = await login(role)
    for (const statement of [
      attack,
      'create view pg_temp.pg_class as select 1',
      "create type pg_temp.mood as enum ('x')",
      'create domain pg_temp.text as pg_catalog.text',
    ]) {
      await t.rejects(session.unsafe(statement), { code: '42501' }, statement.slice(0, 60))
    }
    await t.rejects(session`create temporary table mine ()`, { code: '42501' })
  })

  t.test(
    `${role} with the right to create temporary objects cannot run code as the owner`,
    async (t) => {
      const { name, session, notices } = await login(role)
      await sql.unsafe(`grant temporary on database ${database} to ${name}`)
      await session.unsafe((await shadows()).join(';\n'))
      const statements = await statementsOf(role)
      const done = await runAll(session, statements)
      t.ok(done > 15, `${done} of ${statements.length} statements succeeded`)
      t.same(
        notices.filter((notice) => notice.startsWith('attack')),
        [],
      )
      t.equal(await isSuperuser(name), false)

      // The same objects succeed against a function with an empty search_path, so the attack itself works.
      await sql.unsafe(`
      create function ops.careless(x text) returns text language sql security definer set search_path = ''
      as $$ select 'harmed'::text $$;
      create view ops.careless_view as select ops.careless('x');
      grant usage on schema ops to ${name};
      grant execute on function ops.careless to ${name};
      grant select on ops.careless_view to ${name}`)
      for (const careless of ["select ops.careless('x')", 'select * from ops.careless_view']) {
        notices.length = 0
        await runAll(session, [careless])
        t.match(notices, [/^attack ran as /], careless)
      }
      await sql.unsafe('drop view ops.careless_view; drop function ops.careless(text)')
    },
  )
}

t.test('every security definer function has search_path pg_catalog, pg_temp', async (t) => {
  const functions = await sql<{ name: string; config: string[] | null }[]>`
    select p.oid::regprocedure::text as name, p.proconfig as config
    from pg_proc p
    where p.prosecdef and p.pronamespace::regnamespace::text not in ('pg_catalog', 'information_schema')`
  t.ok(functions.length > 100)
  for (const { name, config } of functions) {
    if (!config?.includes('search_path=pg_catalog, pg_temp')) t.fail(`${name}: ${config}`)
  }
})

t.test('core.encode_id is the only plpgsql function that views call as their reader', async (t) => {
  // plpgsql takes the types of variables as the first caller's search path has them. The types that
  // encode_id names are those of pg_catalog; a function added here must qualify its types as well.
  const compiled = await sql`
    select distinct p.oid::regproc::text as name
    from pg_rewrite r
    join pg_class v on v.oid = r.ev_class and v.relkind = 'v' and v.relnamespace = 'ops'::regnamespace
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_proc'::regclass
    join pg_proc p on p.oid = d.refobjid
    join pg_language l on l.oid = p.prolang
    where not p.prosecdef and l.lanname not in ('sql', 'c', 'internal')`
  t.same(compiled, [{ name: 'core.encode_id' }])
})

t.test('views of ops use objects of Postgram, its queues and pg_catalog only', async (t) => {
  const foreign = await sql`
    select r.ev_class::regclass::text as view, pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) as uses
    from pg_rewrite r
    join pg_class v on v.oid = r.ev_class and v.relkind = 'v'
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refobjid <> r.ev_class
    cross join pg_identify_object_as_address(d.refclassid, d.refobjid, 0) a
    where v.relnamespace::regnamespace::text = 'ops'
      and coalesce(a.object_names[1], '') !~ '^(app|core|ops|pg_catalog|graphile_worker|pgboss)(\\.|$)'`
  t.same(foreign, [])
})

t.test(
  'no check, default, index or policy calls a function outside pg_catalog and pgboss',
  async (t) => {
    const callers = await sql`
    select pg_describe_object(d.classid, d.objid, d.objsubid) as caller, d.refobjid::regprocedure::text as calls
    from pg_depend d
    join pg_proc p on p.oid = d.refobjid
    where d.refclassid = 'pg_proc'::regclass
      and d.classid in ('pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_class'::regclass, 'pg_policy'::regclass)
      and p.pronamespace::regnamespace::text !~ '^(pg_catalog|pgboss|pg_temp_.*)$'`
    t.same(callers, [])
  },
)
