import t from 'tap'
import { ProviderUnavailable } from '../../src/providers/email.ts'
import { createDatabase, restFailedJobs } from '../fixtures/database.ts'
import { get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
let isReachable = true
const provider = createStandIn({
  async checkDomain() {
    if (!isReachable) throw new ProviderUnavailable('it cannot be reached')
    return 'active'
  },
})
const { base } = await startTestService(url, {
  roles: ['api', 'worker'],
  createEmailProvider: () => provider,
})
const { liveKey } = await createOrganisation(sql)
const tryAgain = await restFailedJobs(sql)

type Domain = { id: string; status: string; records: { status: string }[] }

async function add(name: string): Promise<string> {
  const { status, json, text } = await post(`${base}/v1/domains`, liveKey, { name })
  if (status !== 201) throw new Error(text)
  return json.id
}
const read = async (id: string): Promise<Domain> =>
  (await get(`${base}/v1/domains/${id}`, liveKey)).json

const enqueue = async () => {
  const [row] = await sql<
    { count: number }[]
  >`select api.enqueue_due_domain_checks(${provider.name}) as count`
  return row?.count
}
/** Moves all checks an hour ahead, as if each had just been made. */
const restAll = () => sql`update app.domains set next_check_at = now() + interval '1 hour'`
const due = async (id: string, at = '0 minutes') => {
  const [row] = await sql<{ dueAt: Date }[]>`
    update app.domains set next_check_at = now() + ${at}::interval
    where id = core.decode_id('dom', ${id})
    returning next_check_at as due_at`
  return row?.dueAt
}
const jobs = (task: string) =>
  sql<{ attempts: number; lastError: string | null; runAt: Date }[]>`
    select j.attempts, j.last_error, j.run_at
    from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = ${task}`
const noJobs = (task: string) => until('all jobs', async () => (await jobs(task)).length === 0)

t.test('a due domain check verifies a domain', async (t) => {
  const id = await add('soon.example')
  await restAll()
  t.equal(await enqueue(), 0, 'not before')
  await due(id)
  t.equal(await enqueue(), 1)
  t.equal(await enqueue(), 0, 'once')
  const domain = await until('the check', async () => {
    const seen = await read(id)
    return seen.status === 'verified' && seen
  })
  t.ok(domain.records.every(({ status }) => status === 'verified'))
})

t.test('pending domains are checked every five minutes, verified ones daily', async (t) => {
  const pending = await add('missing.often.example')
  const verified = await add('daily.example')
  await post(`${base}/v1/domains/${verified}/verify`, liveKey, {})
  await restAll()
  await due(pending)
  await due(verified)
  await enqueue()
  await noJobs('check_domain')
  const rows = await sql<{ minutes: number }[]>`
    select round(extract(epoch from next_check_at - last_checked_at) / 60)::int as minutes
    from app.domains where id in (core.decode_id('dom', ${pending}), core.decode_id('dom', ${verified}))
    order by 1`
  t.same(
    rows.map(({ minutes }) => minutes),
    [5, 24 * 60],
  )
})

t.test('checks run at their second, within the minute for which they were enqueued', async (t) => {
  const id = await add('missing.later.example')
  await restAll()
  const dueAt = await due(id, '50 seconds')
  t.equal(await enqueue(), 1)
  t.match(await jobs('check_domain'), [{ runAt: dueAt }])
  await sql`select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))`
  await due(id, '2 minutes')
  t.equal(await enqueue(), 0)
})

t.test('a check that reaches nobody is retried and changes nothing', async (t) => {
  const id = await add('nobody.example')
  const before = await read(id)
  isReachable = false
  t.teardown(() => {
    isReachable = true
  })
  await restAll()
  await due(id)
  await enqueue()
  const job = await until('the failure', async () => {
    const [seen] = await jobs('check_domain')
    return seen?.lastError ? seen : null
  })
  t.match(job, { attempts: 1, lastError: /it cannot be reached/ })
  t.strictSame(await read(id), before)
  isReachable = true
  await tryAgain()
  await until('the next try', async () => (await read(id)).status === 'verified')
})

t.test('a failed domain is not checked on schedule', async (t) => {
  const id = await add('missing.failed.example')
  await restAll()
  await sql`
    update app.domains set created_at = now() - interval '73 hours', next_check_at = now()
    where id = core.decode_id('dom', ${id})`
  await enqueue()
  await until('the failure', async () => (await read(id)).status === 'failed')
  const [row] =
    await sql`select next_check_at from app.domains where id = core.decode_id('dom', ${id})`
  t.same(row, { nextCheckAt: null })
})

t.test('a check of a deleted domain or with an invalid payload changes nothing', async (t) => {
  await sql`select graphile_worker.add_job('check_domain', json_build_object('id', gen_random_uuid()))`
  await noJobs('check_domain')
  await sql`select graphile_worker.add_job('check_domain', '{"id": 7}')`
  const job = await until('the refusal', async () => {
    const [seen] = await jobs('check_domain')
    return seen?.lastError ? seen : null
  })
  t.match(job.lastError, /Expected string/)
  await sql`select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))`
})

const keysOf = async (name: string) => {
  const rows = await sql<{ selector: string; state: string; value: string }[]>`
    select k.selector, k.state, k.value from app.dkim_keys k join app.domains d on d.id = k.domain_id
    where d.name = ${name} order by k.selector`
  return Object.fromEntries(rows.map(({ selector, state }) => [selector, state]))
}

t.test('DKIM keys rotate repeatedly without the customer', async (t) => {
  const id = await add('rotating.example')
  const { records } = await read(id)
  t.same(await keysOf('rotating.example'), { pg1: 'active', pg2: 'next' })
  for (const [domain, keys] of [
    ['rotating.example', { pg1: 'retired', pg2: 'active', pg3: 'next' }],
    [id, { pg1: 'next', pg2: 'retired', pg3: 'active' }],
    ['ROTATING.example', { pg1: 'active', pg2: 'next', pg3: 'retired' }],
  ] as const) {
    const [row] = await sql<{ said: string }[]>`select ops.rotate_dkim(${domain}) as said`
    t.match(row?.said, /^pg\d will sign for rotating\.example instead of pg\d/)
    await noJobs('rotate_dkim')
    t.same(await keysOf('rotating.example'), keys)
  }
  t.strictSame((await read(id)).records, records, 'what is published stays')
})

t.test('a DKIM key that is not in DNS yet does not sign', async (t) => {
  await add('missing.rotating.example')
  await sql`select ops.rotate_dkim('missing.rotating.example')`
  const job = await until('the refusal', async () => {
    const [seen] = await jobs('rotate_dkim')
    return seen?.lastError ? seen : null
  })
  t.match(job.lastError, /pg2\._domainkey\.missing\.rotating\.example is not in DNS yet/)
  t.same(await keysOf('missing.rotating.example'), { pg1: 'active', pg2: 'next' })
  await sql`select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))`
})
