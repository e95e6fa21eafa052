import t from 'tap'
import type { Sql } from '../../src/db/client.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'
import { addEvents, createEndpoint, stateOf, type TestEndpoint } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })

/** The time of the service does not advance; that of the server does. */
const NOW = '2026-03-04T10:00:00Z'

/** Creates an endpoint with deliveries that are due in these numbers of seconds. */
async function dueIn(...seconds: number[]): Promise<TestEndpoint> {
  const endpoint = await createEndpoint(sql, await createOrganisation(sql))
  await addEvents(sql, [endpoint], seconds.length)
  await sql`delete from graphile_worker._private_jobs`
  await sql`
    update app.webhook_deliveries d
    set due_at = ${NOW}::timestamptz + s.seconds * interval '1 second'
    from (
      select event_id, (${seconds}::float8[])[row_number() over (order by event_id)] as seconds
      from app.webhook_deliveries where endpoint_id = core.decode_id('we', ${endpoint.id})
    ) s
    where d.event_id = s.event_id`
  return endpoint
}

/** Runs the scheduled task; returns the number of jobs that it added. */
const enqueue = () =>
  atTime(sql, NOW, async (tx) => {
    const [row] = await tx<{ jobs: number }[]>`select api.enqueue_due_deliveries() as jobs`
    return row?.jobs
  })

/** Returns in how many seconds the jobs of an endpoint run. */
async function jobsOf({ id }: TestEndpoint) {
  const rows = await sql<{ seconds: number }[]>`
    select extract(epoch from run_at - created_at)::float8 as seconds
    from graphile_worker._private_jobs
    where payload ->> 'endpoint' = core.decode_id('we', ${id})::text
    order by run_at`
  return rows.map(({ seconds }) => seconds)
}

t.afterEach(async () => {
  await sql`delete from app.webhook_deliveries`
  await sql`delete from graphile_worker._private_jobs`
})

t.test(
  'enqueue_due_deliveries: due deliveries get jobs, those within one second share a job',
  async (t) => {
    const one = await dueIn(0.25, 30.1, 30.2, 30.9, 31, 90)
    const other = await dueIn(30.5)
    const later = await dueIn(90.001, 86_400)
    t.equal(await enqueue(), 5)
    t.same(await jobsOf(one), [0.25, 30.9, 31, 90])
    t.same(await jobsOf(other), [30.5])
    t.same(await jobsOf(later), [])
  },
)

t.test(
  'enqueue_due_deliveries: an overdue delivery gets a job unless one waits or runs',
  async (t) => {
    const left = await dueIn(-1, 0)
    const waiting = await dueIn(-60)
    const held = await dueIn(-60)
    const [job] = await sql<{ id: string }[]>`
    select id from graphile_worker.add_job('deliver_webhook', run_at := now() + interval '1 day')`
    await sql`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a pool'
    where id = ${job?.id ?? ''}`
    await sql`
    update app.webhook_endpoints set lease_job_id = ${job?.id ?? ''}
    where id = core.decode_id('we', ${held.id})`
    await sql`
    select core.add_jobs(array[core.delivery_job(e)]) from app.webhook_endpoints e
    where e.id = core.decode_id('we', ${waiting.id})`
    t.equal(await enqueue(), 1)
    t.same(await jobsOf(left), [0])
    t.equal(await enqueue(), 0, 'a job waits now')
    await sql`
    update graphile_worker._private_jobs set locked_at = null, locked_by = null
    where id = ${job?.id ?? ''}`
    t.equal(await enqueue(), 1, 'no running job holds the lease')
    t.same(await jobsOf(held), [0])
  },
)

t.test('enqueue_due_deliveries: a busy endpoint gets jobs for the next 30 seconds', async (t) => {
  const busy = await dueIn(...Array.from({ length: 80 }, (_, second) => second + 1))
  t.equal(await enqueue(), 30)
  t.equal((await jobsOf(busy)).at(-1), 30)
})

t.test(
  'enqueue_due_deliveries: a disabled endpoint gets no job, a failing one a lower priority',
  async (t) => {
    const disabled = await dueIn(-1, 10)
    const failing = await dueIn(-1, 10)
    await sql`select ops.disable_webhook_endpoint(${disabled.id}, 'a test')`
    await sql`
    update app.webhook_endpoints set failing_since = now()
    where id = core.decode_id('we', ${failing.id})`
    t.equal(await enqueue(), 2)
    t.same(await jobsOf(failing), [0, 10])
    const jobs = await sql<{ priority: number }[]>`
    select distinct priority from graphile_worker._private_jobs`
    t.same([...jobs], [{ priority: 10 }])
  },
)

t.test('delivery_jobs: endpoints share jobs, eight each; one that fails has its own', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoints: TestEndpoint[] = []
  for (let made = 0; made < 12; made += 1) endpoints.push(await createEndpoint(sql, organisation))
  const failing = endpoints.slice(0, 2).map(({ id }) => id)
  await sql`
    update app.webhook_endpoints set failing_since = now()
    where core.encode_id('we', id) = any (${failing}::text[])`
  await addEvents(sql, endpoints, 1)
  const jobs = await sql<{ task: string; priority: number; endpoints: string[] }[]>`
    select t.identifier as task, j.priority, array(
      select core.encode_id('we', e::uuid)
      from json_array_elements_text(coalesce(j.payload -> 'endpoints', json_build_array(j.payload -> 'endpoint'))) e
    ) as endpoints
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    order by t.identifier, cardinality(array(select json_array_elements(j.payload -> 'endpoints')))`
  t.same(
    jobs.map(({ task, priority, endpoints }) => [task, priority, endpoints.length]),
    [
      ['deliver_webhook', 10, 1],
      ['deliver_webhook', 10, 1],
      ['deliver_webhooks', 0, 2],
      ['deliver_webhooks', 0, 8],
    ],
  )
  t.same(jobs.flatMap((job) => job.endpoints).sort(), endpoints.map(({ id }) => id).sort())
})

t.test(
  'enqueue_due_deliveries: a job of several endpoints that no process takes is replaced after a minute',
  async (t) => {
    const one = await dueIn(-1)
    const other = await dueIn(-1)
    await sql`
      select core.add_jobs(core.delivery_jobs(array_agg(id))) from app.webhook_endpoints
      where core.encode_id('we', id) = any (${[one.id, other.id]}::text[])`
    t.equal(await enqueue(), 0)
    await sql`update graphile_worker._private_jobs set created_at = now() - interval '61 seconds'`
    t.equal(await enqueue(), 2, 'processes of an older version do not know such jobs')
    t.equal(await enqueue(), 0)
  },
)

/** Creates two endpoints, in the order of their IDs; each event waits for its second attempt at both. */
async function aWorld(events: number) {
  const organisation = await createOrganisation(sql)
  const one = await createEndpoint(sql, organisation)
  const other = await createEndpoint(sql, organisation)
  const added = await addEvents(sql, [one, other], events)
  await sql`update app.webhook_deliveries set attempts = 1, due_at = now() + interval '1 hour'`
  return { organisation, one, other, ids: added.map(({ id }) => id) }
}

/** Records the result of an event's second attempt at an endpoint. */
const finish = (sql: Sql, endpoint: { id: string }, event = '', error: string | null = null) => sql`
  select api.finish_deliveries(jsonb_build_array(jsonb_build_object(
    'endpoint_id', core.decode_id('we', ${endpoint.id}), 'event_id', core.decode_id('evt', ${event}),
    'attempt', 2, 'started_at', clock_timestamp(), 'duration_ms', 5, 'error', ${error}::text)))`

t.test('finish_deliveries and a replay at several endpoints do not deadlock', async (t) => {
  const { organisation, one, other, ids } = await aWorld(2)
  for (const replay of [
    () =>
      sql`select ops.replay_events(${organisation.id}, now() - interval '1 day', now() + interval '1 day')`,
    () => sql`select ops.replay_event(${ids[1] ?? ''})`,
  ]) {
    await sql`update app.webhook_deliveries set attempts = 1, due_at = now() + interval '1 hour'`
    const { replaying } = await sql.begin(async (tx) => {
      await finish(tx as unknown as Sql, other, ids[1])
      const replaying = replay().then(() => 'done')
      replaying.catch(() => undefined)
      await untilLocked(sql, 1, 'replay_event')
      await finish(tx as unknown as Sql, one, ids[1], 'responded 500')
      return { replaying }
    })
    t.equal(await replaying, 'done')
    const [row] = await sql`
        select d.attempts, d.due_at <= now() as is_due from app.webhook_deliveries d
        where d.endpoint_id = core.decode_id('we', ${other.id}) and d.event_id = core.decode_id('evt', ${ids[1] ?? ''})`
    t.same(row, { attempts: 0, isDue: true }, 'an event delivered meanwhile is delivered again')
  }
})

t.test(
  'finish_deliveries: does not wait for a transaction that enables the endpoint',
  async (t) => {
    const { one, other, ids } = await aWorld(1)
    const [event] = ids
    await sql`select ops.disable_webhook_endpoint(${one.id}, 'a test')`
    await sql.begin(async (enabling) => {
      await enabling`select ops.enable_webhook_endpoint(${one.id}, replay => true)`
      await sql.begin(async (tx) => {
        // A wait would also delay the results of other endpoints in the same call.
        await tx`set local lock_timeout = '1ms'`
        await finish(tx as unknown as Sql, one, event)
        await finish(tx as unknown as Sql, other, event)
      })
    })
    const left = await sql`
    select core.encode_id('we', endpoint_id) as id, attempts from app.webhook_deliveries
    where event_id = core.decode_id('evt', ${event ?? ''})`
    t.same([...left], [{ id: one.id, attempts: 0 }], 'it is delivered there again')
    t.match(await stateOf(sql, one), { disabledAt: null, failingSince: null })
  },
)

t.test('delete_webhook_endpoint and finish_deliveries do not deadlock', async (t) => {
  const { one, ids } = await aWorld(3)
  const { deleting } = await sql.begin(async (tx) => {
    await finish(tx as unknown as Sql, one, ids[1])
    const deleting = sql`select ops.delete_webhook_endpoint(${one.id})`.then(() => 'done')
    deleting.catch(() => undefined)
    await untilLocked(sql, 1, 'delete_webhook_endpoint')
    // The rows before and after the locked one, in case either order of locks is used.
    await finish(tx as unknown as Sql, one, ids[0])
    await finish(tx as unknown as Sql, one, ids[2])
    return { deleting }
  })
  t.equal(await deleting, 'done')
})
