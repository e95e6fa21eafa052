import t from 'tap'
import { createPools } from '../../src/db/pools.ts'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

t.test('createPools: each pool has its limits on statements', async (t) => {
  const pools = createPools(url, { role: 'postgram_service' })
  t.teardown(() => pools.end(0))
  const limits = Object.fromEntries(
    await Promise.all(
      Object.entries(pools.all).map(async ([name, pool]) => {
        const [row] = await pool.use(
          (sql) => sql`
            select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
              current_setting('idle_in_transaction_session_timeout') as idle,
              current_setting('temp_file_limit') as temp_files, current_user as role`,
        )
        return [name, { ...row }]
      }),
    ),
  )
  const common = { idle: '10s', tempFiles: '512MB', role: 'postgram_service' }
  t.same(limits, {
    intake: { statement: '8s', lock: '3s', ...common },
    requests: { statement: '8s', lock: '3s', ...common },
    work: { statement: '30s', lock: '30s', ...common },
    clock: { statement: '10min', lock: '1min', ...common },
  })
})

t.test('createPools: a pool starts without the right to limit temporary files', async (t) => {
  await sql`create role postgram_test_plain login password 'plain'`
  t.teardown(() => sql`drop role postgram_test_plain`)
  const pools = createPools(
    Object.assign(new URL(url), { username: 'postgram_test_plain', password: 'plain' }).href,
    {},
  )
  t.teardown(() => pools.end(0))
  const [row] = await pools.use((sql) => sql`select current_setting('temp_file_limit') as limit`)
  t.same(row, { limit: '-1' })
})

t.test('reads that hang leave sends and the reads of others their connections', async (t) => {
  const { base } = await startTestService(url, { roles: ['api'] })
  const slow = await createOrganisation(sql)
  const victim = await createOrganisation(sql)
  await sql.unsafe(`
    drop function api.list_domains;
    create function api.list_domains(organisation_id uuid) returns text
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
    begin
      if organisation_id = core.decode_id('org', '${slow.id}') then
        perform pg_advisory_xact_lock_shared(1);
      end if;
      return '[]';
    end $$;
    grant execute on function api.list_domains to postgram_service`)
  const { answers } = await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1)`
    const answers = Array.from({ length: 20 }, () => get(`${base}/v1/domains`, slow.liveKey))
    const hanging = () => sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%list_domains%'`
    await until('two reads to hang', async () => (await hanging()).length === 2)
    t.equal((await get(`${base}/v1/domains`, victim.liveKey)).status, 200)
    t.equal((await post(`${base}/v1/emails`, victim.liveKey, anEmail(victim.domain))).status, 200)
    t.equal((await post(`${base}/v1/emails`, slow.liveKey, anEmail(slow.domain))).status, 200)
    t.ok((await hanging()).length <= 2, 'of one organisation two reads run at a time')
    return { answers }
  })
  await Promise.all(answers)
})

t.test(
  'pages that hang leave the API its connections, and the pages of other sessions theirs',
  async (t) => {
    const { base } = await startTestService(url, { roles: ['api'] })
    const slow = await createOrganisation(sql)
    const other = await createOrganisation(sql)
    const [one, two, three] = await Promise.all(
      [slow, slow, other].map(({ id }, n) =>
        signInAs(sql, base, { organisation: id, role: 'viewer', email: `viewer-${n}@example.com` }),
      ),
    )
    await sql.unsafe(`
    drop function api.dashboard_keys;
    create function api.dashboard_keys(session text, organisation text) returns jsonb
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
    begin
      if organisation = '${slow.id}' then
        perform pg_advisory_xact_lock_shared(2);
      end if;
      return '[]';
    end $$;
    grant execute on function api.dashboard_keys to postgram_service`)
    const hanging = () => sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%dashboard_keys%'`
    const page = `/dashboard/${slow.id}/keys`
    const { pages } = await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(2)`
      const pages = Array.from({ length: 6 }, () => one?.get(page))
      await until('a page to hang', async () => (await hanging()).length === 1)
      t.equal((await three?.get(`/dashboard/${other.id}/keys`))?.status, 200)
      t.ok((await hanging()).length <= 1, 'of one session one call runs at a time')
      pages.push(two?.get(page))
      await until('a page of the other session to hang', async () => (await hanging()).length === 2)
      pages.push(three?.get(`/dashboard/${other.id}/keys`))
      t.equal((await get(`${base}/v1/domains`, other.liveKey)).status, 200)
      t.ok((await hanging()).length <= 2, 'of the dashboard two calls run at a time')
      return { pages }
    })
    await Promise.all(pages)
  },
)
