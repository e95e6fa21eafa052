import t from 'tap'
import { catalogOf, createDatabase } from '../fixtures/database.ts'
import { copyVersion } from '../fixtures/deployment.ts'
import { get } from '../fixtures/http.ts'
import { allSentOnce, startLoad } from '../fixtures/load.ts'
import { spawnService } from '../fixtures/processes.ts'

const { url, sql } = await createDatabase()

/** Returns a later version whose changes an older one tolerates. */
async function compatibleVersion() {
  const next = await copyVersion()
  await next.add(
    'migrations/9998_next.sql',
    `alter table app.messages add column region text;
     alter table app.request_counts rename column requests to asked;
     create index messages_region on app.messages (region) where region is not null;
     create table app.regions (name text primary key);
     comment on table app.regions is 'Regions that messages are sent to.';`,
  )
  await next.replace('requests = excluded.requests + case', 'asked = excluded.asked + case')
  await next.replace('then 0 else r.requests end', 'then 0 else r.asked end')
  await next.replace('(organisation_id, second, requests)', '(organisation_id, second, asked)')
  await next.replace(
    'returning r.organisation_id, r.requests',
    'returning r.organisation_id, r.asked as requests',
  )
  // One more column in the results of the busiest functions, and one more argument of another function.
  await next.replace('  refused_for_ms integer\n', '  refused_for_ms integer,\n  region text\n')
  await next.replace('- v_now) * 1000)::integer end', "- v_now) * 1000)::integer end, 'af'")
  await next.replace(
    '  settled_recipients text[],\n  large_bytes integer\n',
    '  settled_recipients text[],\n  large_bytes integer,\n  region text\n',
  )
  await next.replace(
    'm.tags, m.class, b.settled_recipients, v.large_bytes\n',
    "m.tags, m.class, b.settled_recipients, v.large_bytes, 'af'\n",
  )
  await next.replace('api.health()', "api.health(region text default 'af')")
  await next.replace('function api.health is', 'function api.health(text) is')
  // Rename a helper.
  await next.move('core/begin_accept.sql', 'core/accept_begins.sql')
  await next.replace('core.begin_accept', 'core.accept_begins')
  await next.add(
    'api/regions.sql',
    `create function api.regions() returns setof text language sql stable security definer
     set search_path = '' as $$ select r.name from app.regions r $$;
     comment on function api.regions is 'Regions.';`,
  )
  return next
}

const isNext = async () => (await sql`select to_regprocedure('api.regions()') as there`)[0]?.there

t.test(
  'upgrade while the old version serves: no request fails, every message is sent once',
  async (t) => {
    const next = await compatibleVersion()
    const old = await spawnService(url)
    const load = await startLoad(sql, old.base)
    await load.more(200)

    t.same(await next.run(['migrate'], url), { code: 0, stdout: '', stderr: '' })
    t.ok(await isNext())
    await load.more(200)
    t.equal((await get(`${old.base}/readyz`, null)).status, 200, 'the old process stays ready')

    const late = await spawnService(url, 'api')
    t.ok(await isNext(), 'another old process does not undo the migration')
    t.equal((await get(`${late.base}/readyz`, null)).status, 200)
    const fresh = await spawnService(url, 'all', {}, next.folder)
    t.equal((await get(`${fresh.base}/readyz`, null)).status, 200)
    load.join(late.base, fresh.base)
    await load.more(400)

    await load.leave(old.base, late.base)
    t.same(await Promise.all([old.end('SIGTERM'), late.end('SIGTERM')]), [0, 0])
    await load.more(200)
    await load.stop()
    t.same(load.failures, [])

    await allSentOnce(t, sql)
    t.equal(await fresh.end('SIGTERM'), 0)
  },
)

t.test(
  'migrate: refuses a change that breaks running processes, except with --breaking',
  async (t) => {
    const { url, sql } = await createDatabase()
    const next = await copyVersion()
    await next.add('migrations/9998_next.sql', 'alter table app.messages add column region text;')
    await next.move('api/list_domains.sql', 'api/domains_of.sql')
    await next.replace('api.list_domains', 'api.domains_of')
    await next.replace(
      '  retry_after integer,\n  refused_for_ms',
      '  retry_after bigint,\n  refused_for_ms',
    )
    await next.replace(
      '- k.requests + k.place > 100 then 1 end',
      '- k.requests + k.place > 100 then 1::bigint end',
    )
    await next.replace(
      'api.get_usage(organisation_id uuid)',
      'api.get_usage(organisation_id uuid, region text)',
    )

    const old = await spawnService(url, 'api')
    const stateOf = async () => ({
      catalog: await catalogOf(sql),
      migrations: [...(await sql`select id from app.migrations order by id`)],
      code: [...(await sql`select * from app.code`)],
      functions: [
        ...(await sql`select oid from pg_proc where pronamespace = 'api'::regnamespace order by 1`),
      ],
    })
    const before = await stateOf()
    const refusal = new RegExp(
      [
        'This version would break processes that run now:',
        `  api on .*, process ${old.child.pid}`,
        'The problems:',
        '  api.admit does not return retry_after integer',
        '  api.admit_calls does not return retry_after integer',
        '  api.get_usage needs region',
        '  api.list_domains is gone',
        'Nothing was changed. [^]*node src/main.ts migrate --breaking\n$',
      ].join('\n'),
    )
    for (const command of ['migrate', 'start']) {
      const { code, stderr } = await next.run([command], url)
      t.equal(code, 1, command)
      t.match(stderr, refusal)
      t.same(await stateOf(), before, 'nothing has changed')
    }
    t.equal((await get(`${old.base}/readyz`, null)).status, 200)

    t.same(await next.run(['migrate', '--breaking'], url), { code: 0, stdout: '', stderr: '' })
    const response = await get(`${old.base}/readyz`, null)
    t.equal(response.status, 503)
    t.match(response.json.status, /api\.list_domains is gone/)
    t.equal(await old.end('SIGTERM'), 0)

    const again = await copyVersion()
    const { stdout } = await again.run(['doctor'], url)
    t.match(
      stdout,
      /^PROBLEM schema: the database is of a newer version: start that version, or run "node src\/main\.ts migrate" of this one to go back, see \/docs\/deployment#downgrade$/m,
    )
    const { code, stderr } = await again.run(['start', '--only', 'api'], url)
    t.equal(code, 1, 'the old version, started again, exits')
    t.match(
      stderr,
      /^the schema is of another version: .*api\.list_domains is gone; upgrade this process\n$/,
    )
  },
)

t.test('migrate: refuses a migration marked as breaking only while processes run', async (t) => {
  const { url, sql } = await createDatabase()
  const next = await copyVersion()
  await next.add('migrations/9998_next.sql', '--! breaking\ncreate table app.marked ();')
  const old = await spawnService(url, 'worker')
  const refused = await next.run(['migrate'], url)
  t.equal(refused.code, 1)
  t.match(refused.stderr, /^ {2}sql\/migrations\/9998_next\.sql is marked as breaking$/m)
  t.match(refused.stderr, /^ {2}worker on .*\n {2}sms on .*$/m)
  t.same(await sql`select to_regclass('app.marked') as table`, [{ table: null }])
  t.equal(await old.end('SIGTERM'), 0)
  t.same(await next.run(['migrate'], url), { code: 0, stdout: '', stderr: '' })
  t.same(await sql`select to_regclass('app.marked') is not null as is_there`, [{ isThere: true }])
})

t.test('migrate: refuses other arguments', async (t) => {
  const version = await copyVersion()
  for (const args of [['--force'], ['--breaking', 'now']]) {
    t.match(await version.run(['migrate', ...args], url), { code: 1, stderr: /^usage: / })
  }
})

t.test('migrate: names a file with an error and changes nothing', async (t) => {
  const { url, sql } = await createDatabase()
  const before = [...(await sql`select * from app.code`)]
  const next = await copyVersion()
  await next.add(
    'core/wrong.sql',
    'create function core.wrong() returns nothing language sql as $$ $$;',
  )
  const { code, stderr } = await next.run(['migrate'], url)
  t.equal(code, 1)
  t.match(stderr, /sql\/core\/wrong\.sql: type "nothing" does not exist/)
  t.same([...(await sql`select * from app.code`)], before)
})
