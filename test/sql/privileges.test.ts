import { PgBoss } from 'pg-boss'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { addDkimKeys } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, noteAttempt, recordEvents } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
// Every view has a row: Postgres calls the functions of a view for its rows only.
await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set search_path = ''`)
const { base } = await startTestService(url)
const sender = await createOrganisation(sql)
const { id: organisation, liveKey, domain } = sender
await sql`select ops.create_template(${organisation}, 'Hello', 'Hello {{name}}', null, 'Hello')`
await addDkimKeys(sql, { domain, dkimZone: 'dkim.zone', values: ['k=rsa; p='] })
await sql`insert into app.provider_health (provider, failing_since, last_error) values ('another', now(), 'is down')`
const endpoint = await createEndpoint(sql, sender, { types: ['sms.opted_out'] })
const [event = ''] = await recordEvents(sql, sender, 'sms.opted_out', [new Date()])
await noteAttempt(sql, endpoint.id, event, { error: 'responded 500' })
await sql`update app.webhook_endpoints set failing_since = now(), last_error = 'responded 500'`
await sql`
  insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
  select core.decode_id('we', ${endpoint.id}), core.decode_id('evt', ${event}), now() + interval '1 day'`
const first = await post(`${base}/v1/emails`, liveKey, anEmail(domain))

const DENIED = '42501'

/** The names of all ops views, and of all functions of a schema with nulls as arguments. */
const views = (
  await sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class
    where relnamespace = 'ops'::regnamespace and relkind = 'v' order by 1`
).map(({ name }) => name)

async function invocations(schema: string) {
  const rows = await sql<{ invocation: string }[]>`
    select format('%s(%s)', p.oid::regproc, (
      select string_agg('null::' || a.oid::regtype::text, ', ' order by a.place)
      from unnest(p.proargtypes) with ordinality a (oid, place))) as invocation
    from pg_proc p
    where p.pronamespace = ${schema}::regnamespace and p.prokind = 'f'
    order by 1`
  return rows.map(({ invocation }) => invocation)
}

/** Returns the statements that the role may not execute; errors of other kinds do not count. */
async function denied(role: string, statements: string[]) {
  const found: string[] = []
  await rolledBack(sql, async (tx) => {
    await tx.unsafe(`set local role ${role}`)
    for (const statement of statements) {
      const isDenied = await tx
        .savepoint((inner) => inner.unsafe(statement))
        .then(
          () => false,
          ({ code }) => code === DENIED,
        )
      if (isDenied) found.push(statement)
    }
  })
  return found
}

const tables = (
  await sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class
    where relnamespace = 'app'::regnamespace and relkind in ('r', 'p') order by 1`
).map(({ name }) => name)

const touches = tables.flatMap((name) => [
  `select from ${name}`,
  `insert into ${name} default values`,
  `delete from ${name}`,
  `truncate ${name}`,
  `lock table ${name}`,
])

t.test('the roles cannot log in and have no attributes or memberships', async (t) => {
  const roles = await sql`
    select rolname, rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls
    from pg_roles
    where rolname in ('postgram_service', 'postgram_operator', 'postgram_report')
    order by rolname`
  const nothing = {
    rolcanlogin: false,
    rolsuper: false,
    rolcreaterole: false,
    rolcreatedb: false,
    rolreplication: false,
    rolbypassrls: false,
  }
  t.same(
    roles.map((role) => ({ ...role })),
    ['postgram_operator', 'postgram_report', 'postgram_service'].map((rolname) => ({
      rolname,
      ...nothing,
    })),
  )
  const memberships = await sql`
    select m.member::regrole::text from pg_auth_members m
    where m.member::regrole::text in ('postgram_service', 'postgram_operator', 'postgram_report')`
  t.same(memberships, [], 'they are members of no role')
})

for (const role of ['postgram_service', 'postgram_operator', 'postgram_report']) {
  t.test(`${role} has no right on any table of app`, async (t) => {
    t.ok(tables.length > 20)
    t.same(await denied(role, touches), touches)
  })

  t.test(`${role} cannot call core`, async (t) => {
    const calls = (await invocations('core')).map((invocation) => `select ${invocation}`)
    t.ok(calls.length > 30)
    t.same(await denied(role, calls), calls)
  })
}

t.test('postgram_service may execute every function of api', async (t) => {
  const calls = (await invocations('api')).map((invocation) => `select ${invocation}`)
  t.ok(calls.length > 10)
  t.same(await denied('postgram_service', calls), [])
})

t.test('postgram_service can neither change code nor grant rights nor create roles', async (t) => {
  const statements = [
    'drop function api.health()',
    "create or replace function api.health() returns text language sql as $$ select '' $$",
    'alter schema api rename to mine',
    'drop schema ops cascade',
    'grant usage on schema app to postgram_service',
    'create role mine',
  ]
  t.same(await denied('postgram_service', statements), statements)
})

t.test('postgram_operator may execute every function and read every view of ops', async (t) => {
  const statements = [
    ...(await invocations('ops')).map((invocation) => `select ${invocation}`),
    ...views.map((view) => `select * from ${view}`),
  ]
  t.ok(statements.length > 25)
  t.same(await denied('postgram_operator', statements), [])
})

t.test(
  'every view of webhooks has a row in these tests, so that its functions are called',
  async (t) => {
    for (const view of views.filter((view) => /webhook|endpoint/.test(view))) {
      t.not((await sql.unsafe(`select from ${view}`)).length, 0, view)
    }
  },
)

/** The functions of ops that only read: those that are not declared volatile. */
const readers = (
  await sql<{ name: string }[]>`
    select distinct proname as name from pg_proc
    where pronamespace = 'ops'::regnamespace and provolatile <> 'v'`
).map(({ name }) => name)

t.test('postgram_report may read every view of ops', async (t) => {
  t.same(
    await denied(
      'postgram_report',
      views.map((view) => `select * from ${view}`),
    ),
    [],
  )
})

t.test(
  'postgram_report may execute the functions of ops that only read, except export_person',
  async (t) => {
    const calls = (await invocations('ops')).map((invocation) => `select ${invocation}`)
    t.ok(readers.length > 5)
    // export_person returns everything about a person, with the texts of messages.
    const forReports = readers.filter((name) => name !== 'export_person')
    t.same(
      await denied('postgram_report', calls),
      calls.filter((call) => !forReports.some((name) => call.startsWith(`select ops.${name}(`))),
      'sql/ops/grants.sql grants the functions that are declared stable, and no others',
    )
  },
)

t.test('postgram_operator and postgram_report cannot write through a view', async (t) => {
  const writes = views.flatMap((view) => [
    `delete from ${view}`,
    `insert into ${view} default values`,
  ])
  for (const role of ['postgram_operator', 'postgram_report']) {
    await rolledBack(sql, async (tx) => {
      await tx.unsafe(`set local role ${role}`)
      for (const write of writes) {
        const { code } = await raisedBy(tx, (inner) => inner.unsafe(write))
        // 55000: the view is not updatable by any role.
        t.ok([DENIED, '55000'].includes(code), `${role}: ${write}`)
      }
    })
  }
})

t.test('postgram_operator can create an organisation and use all that belongs to it', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`set local role postgram_operator`
    await tx`select ops.create_plan('mine', 'Mine', 1, 2, 3, 4)`
    const [made] = await tx<{ id: string }[]>`
      select ops.create_organisation('Acme', 'owner@acme.example', 'mine') as id`
    const id = String(made?.id)
    const [key] = await tx<{ key: string }[]>`select ops.create_api_key(${id}) as key`
    await tx`select ops.verify_domain(${id}, 'acme.example')`
    await tx`select ops.create_template(${id}, 'Hello', 'Hello', null, 'Hello')`
    await tx`select ops.pause(${id}, 'a test')`
    await tx`select ops.resume(${id})`
    await tx`select ops.revoke_api_key(${String(key?.key)})`
    const [endpoint] = await tx<{ id: string }[]>`
      select id from ops.create_webhook_endpoint(${id}, 'https://hooks.acme.example/', '{email.sent}')`
    const hook = String(endpoint?.id)
    const [event] = await tx`select ops.send_test_event(${hook}, 'email.sent') as id`
    await tx`select ops.why(${event?.id})`
    await tx`select ops.rotate_webhook_secret(${hook})`
    await tx`select ops.disable_webhook_endpoint(${hook}, 'a test')`
    await tx`select ops.enable_webhook_endpoint(${hook}, replay => true)`
    const [row] = await tx`select name, state, plan from ops.organisations where id = ${id}`
    t.same(row, { name: 'Acme', state: 'active', plan: 'mine' })
    t.ok((await tx`select from ops.processes`).length >= 0)
  })
})

t.test('functions of api and ops run as the owner', async (t) => {
  const careless = await sql`
    select p.oid::regprocedure::text as function from pg_proc p
    where p.pronamespace in ('api'::regnamespace, 'ops'::regnamespace) and not p.prosecdef`
  t.same(careless, [])
})

t.test('functions of core run with the rights of the caller, except those in views', async (t) => {
  const definers = await sql<{ name: string; config: string[] | null; isInView: boolean }[]>`
    select p.proname as name, p.proconfig as config, exists (
      select from pg_depend d
      where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
        and d.classid = 'pg_rewrite'::regclass) as is_in_view
    from pg_proc p where p.pronamespace = 'core'::regnamespace and p.prosecdef`
  t.ok(definers.length > 5)
  for (const { name, config, isInView } of definers) {
    t.ok(
      config?.includes('search_path=pg_catalog, pg_temp'),
      `core.${name} runs as the owner with a safe search_path`,
    )
    // A function in a view runs with the rights of the reader.
    t.ok(isInView, `core.${name} runs as the owner because a view calls it`)
  }
})

t.test('postgram_service can use the queues', async (t) => {
  const pool = connect(url, { role: 'postgram_service', max: 1 })
  t.teardown(() => pool.end())
  await pool`
    insert into graphile_worker._private_tasks (identifier) values ('a_test') on conflict do nothing`
  const [seen] =
    await pool`select identifier from graphile_worker._private_tasks where identifier = 'a_test'`
  t.same(seen, { identifier: 'a_test' }, 'row security hides no row from it')

  const separator = url.includes('?') ? '&' : '?'
  const boss = new PgBoss({
    connectionString: `${url}${separator}options=${encodeURIComponent('-c role=postgram_service')}`,
    migrate: false,
    reindex: false,
    registerInstance: false,
    max: 1,
  })
  const failures: Error[] = []
  boss.on('error', (error) => failures.push(error as Error))
  await boss.start()
  await boss.createQueue('a-test')
  await boss.send('a-test', { is: 'here' })
  const [job] = await boss.fetch<{ is: string }>('a-test')
  t.same(job?.data, { is: 'here' })
  await boss.complete('a-test', String(job?.id))
  await boss.schedule('a-test', '* * * * *')
  await boss.supervise()
  t.same(failures, [], 'pg-boss counts and maintains its queues')
  await boss.stop({ graceful: false, close: true })
})

t.test('a database with search_path set to nothing is served like any other', async (t) => {
  t.equal(first.status, 200)
  const pool = connect(url, { max: 1 })
  t.teardown(() => pool.end())
  const [setting] = await pool`show search_path`
  t.same(setting, { searchPath: 'pg_catalog,pg_temp' })
  await until('delivery', async () => {
    const [row] = await sql`
      select from ops.messages where id = ${first.json.id} and status = 'delivered'`
    return row
  })
})
