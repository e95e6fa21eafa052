import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anyJson } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import {
  addEvents,
  attemptsAt,
  createEndpoint,
  stateOf,
  type TestEndpoint,
} from '../fixtures/webhooks.ts'

// No worker runs: the test locks jobs in the names of two pools.
const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const call = caller(sql)

const uuidOf = async ({ id }: TestEndpoint) => {
  const [row] = await sql<{ id: string }[]>`select core.decode_id('we', ${id}) as id`
  return row?.id ?? ''
}

/** Adds a job that this pool runs. */
async function aJob(worker: string | null) {
  const [row] = await sql<{ id: string }[]>`
    with added as materialized (select id from graphile_worker.add_job('deliver_webhook'))
    select id from added`
  await setWorker(row?.id ?? '', worker)
  return row?.id ?? ''
}

const setWorker = (job: string, worker: string | null) => sql`
  update graphile_worker._private_jobs
  set locked_by = ${worker}, locked_at = ${worker && new Date()} where id = ${job}`

async function setUp(events: number) {
  const endpoint = await createEndpoint(sql, organisation)
  await addEvents(sql, [endpoint], events)
  const endpoint_id = await uuidOf(endpoint)
  const start = (job: string, worker: string, inHand: string[] = [], room = 100) =>
    call('start_deliveries', {
      leases: anyJson([{ endpoint_id, job, worker, in_hand: inHand, room }]),
    })
  const end = (job: string, worker: string, pause_seconds = 0) =>
    call('release_leases', { leases: anyJson([{ endpoint_id, job, worker, pause_seconds }]) })
  const finish = (delivery: Awaited<ReturnType<typeof start>>[number], error: string | null) =>
    call('finish_deliveries', {
      results: anyJson([
        {
          endpoint_id,
          event_id: delivery.eventId,
          attempt: delivery.attempt,
          started_at: delivery.startedAt,
          duration_ms: 1,
          status: error ? null : 200,
          error,
        },
      ]),
    })
  return { endpoint, start, end, finish, state: () => stateOf(sql, endpoint) }
}

t.test('start_deliveries: one job holds the lease until it releases it', async (t) => {
  const { start, end, state } = await setUp(3)
  const [first, second] = [await aJob('pool-1'), await aJob('pool-2')]
  const inHand = (await start(first, 'pool-1', [], 2)).map(({ eventId }) => eventId)
  t.equal(inHand.length, 2)
  t.same(await start(second, 'pool-2'), [], 'another job holds the lease')
  t.equal(await end(second, 'pool-2'), 0, 'only its holder releases it')
  const [third, ...others] = await start(first, 'pool-1', inHand)
  t.same(others, [], 'a delivery in progress does not start again')
  t.notOk(inHand.includes(third?.eventId ?? ''))
  t.equal(await end(first, 'pool-1'), 1, 'a job is added for the rest')
  t.notOk((await state()).isHeld)
  t.equal((await start(second, 'pool-2')).length, 3)
})

t.test(
  'release_leases: jobs that end with a pause leave one waiting job for the endpoint',
  async (t) => {
    const { endpoint, end } = await setUp(3)
    const endpoint_id = await uuidOf(endpoint)
    const waiting = async () => [
      ...(await sql<{ id: string; runAt: Date }[]>`
      select j.id, j.run_at from graphile_worker._private_jobs j
      where j.payload ->> 'endpoint' = ${endpoint_id} and j.run_at > now() and j.locked_at is null`),
    ]
    t.equal(await end(await aJob('pool-1'), 'pool-1', 600), 1)
    const [first, ...others] = await waiting()
    t.same(others, [])
    t.equal(await end(await aJob('pool-2'), 'pool-2', 700), 1)
    t.same(await waiting(), [first], 'its time does not change')
    await setWorker(first?.id ?? '', 'pool-1')
    t.equal(await end(first?.id ?? '', 'pool-1', 600), 1, 'a running job leaves another one')
    const [next, ...more] = await waiting()
    t.same(more, [])
    t.not(next?.id, first?.id)
  },
)

t.test(
  'start_deliveries: a job without deliveries in progress or due releases the lease',
  async (t) => {
    const { start, state, finish } = await setUp(1)
    const job = await aJob('pool-1')
    const [delivery] = await start(job, 'pool-1')
    if (!delivery) throw new Error('nothing was due')
    t.same(await start(job, 'pool-1', [delivery.eventId]), [])
    t.ok((await state()).isHeld)
    await finish(delivery, null)
    t.same(await start(job, 'pool-1'), [])
    t.notOk((await state()).isHeld)
  },
)

t.test(
  'start_deliveries: a lease is free if its job was deleted, unlocked or restarted',
  async (t) => {
    for (const how of ['gone', 'freed'] as const) {
      const { start } = await setUp(2)
      const [first, second] = [await aJob('pool-1'), await aJob('pool-2')]
      t.equal((await start(first, 'pool-1')).length, 2)
      if (how === 'gone') await sql`delete from graphile_worker._private_jobs where id = ${first}`
      else await setWorker(first, null)
      t.equal((await start(second, 'pool-2')).length, 2, how)
      await setWorker(first, 'pool-3')
      t.same(await start(first, 'pool-3'), [], 'another job holds the lease now')
    }
    const { start } = await setUp(2)
    const job = await aJob('pool-1')
    await start(job, 'pool-1')
    await setWorker(job, 'pool-2')
    t.equal((await start(job, 'pool-2')).length, 2, 'the restarted job takes its lease over')
  },
)

t.test('start_deliveries: a pool whose job another pool runs gets no deliveries', async (t) => {
  const { start, end, state } = await setUp(2)
  const job = await aJob('pool-2')
  t.same(await start(job, 'pool-1'), [])
  t.equal((await start(job, 'pool-2')).length, 2)
  t.same(await start(job, 'pool-1'), [])
  t.equal(await end(job, 'pool-1'), 0)
  t.ok((await state()).isHeld)
})

t.test('start_deliveries: one of two jobs in a call gets the lease', async (t) => {
  const { endpoint } = await setUp(2)
  const [first, second] = [await aJob('pool-1'), await aJob('pool-1')]
  const endpoint_id = await uuidOf(endpoint)
  const asked = [second, first].map((job) => ({
    ...{ endpoint_id, job, worker: 'pool-1' },
    ...{ in_hand: [], room: 100 },
  }))
  t.equal((await call('start_deliveries', { leases: anyJson(asked) })).length, 2)
  const [held] = await sql<{ leaseJobId: string }[]>`
    select lease_job_id from app.webhook_endpoints where id = ${endpoint_id}`
  t.equal(held?.leaseJobId, first)
})

t.test('start_deliveries: 32 deliveries run at an endpoint, or 4 while it fails', async (t) => {
  const { start, finish } = await setUp(50)
  const job = await aJob('pool-1')
  const all = await start(job, 'pool-1')
  t.equal(all.length, 32)
  t.ok(all.every(({ isFailing }) => !isFailing))
  const [one, two, ...others] = all
  if (!one || !two) throw new Error('nothing was due')
  const ids = others.map(({ eventId }) => eventId)
  t.equal((await start(job, 'pool-1', ids)).length, 2)
  t.equal((await start(job, 'pool-1', ids, 1)).length, 1)
  await finish(one, 'responded 500')
  t.same(await start(job, 'pool-1', ids), [])
  const few = await start(job, 'pool-1', ids.slice(0, 1))
  t.equal(few.length, 3)
  t.ok(few.every(({ isFailing }) => isFailing))
  await finish(two, null)
  t.equal((await start(job, 'pool-1', ids)).length, 2, 'a success restores the limit')
})

t.test('finish_leases: releases the lease of its job once nothing more is due', async (t) => {
  const { endpoint, start, state } = await setUp(2)
  const job = await aJob('pool-1')
  const other = await aJob('pool-2')
  const deliveries = await start(job, 'pool-1')
  const endpoint_id = await uuidOf(endpoint)
  const finish = (place: number, holder: string) =>
    call('finish_leases', {
      results: anyJson([
        {
          endpoint_id,
          event_id: deliveries[place]?.eventId,
          attempt: 1,
          started_at: deliveries[place]?.startedAt,
          duration_ms: 1,
          status: 200,
        },
      ]),
      leases: anyJson([{ endpoint_id, job: holder }]),
    })
  t.same(await finish(0, job), [], 'one is due')
  t.equal((await state()).waiting, 1)
  t.same(await finish(1, other), [], 'another job has the lease')
  t.same(await start(other, 'pool-2'), [])
  t.same(await finish(1, job), [endpoint_id])
  await addEvents(sql, [endpoint], 1)
  t.equal((await start(other, 'pool-2')).length, 1)
})

t.test('finish_deliveries: an attempt that is recorded twice counts once', async (t) => {
  const { endpoint, start, finish, state } = await setUp(1)
  const job = await aJob('pool-1')
  const [delivery] = await start(job, 'pool-1')
  if (!delivery) throw new Error('nothing was due')
  t.equal(await finish(delivery, 'responded 500'), 0)
  const { failingSince } = await state()
  await finish(delivery, 'responded 500')
  const [waiting] = await sql`
    select attempts from app.webhook_deliveries where endpoint_id = ${delivery.endpointId}`
  t.same(waiting, { attempts: 1 })
  t.equal((await attemptsAt(sql, endpoint)).length, 1)
  t.same((await state()).failingSince, failingSince)
})

t.test(
  'finish_deliveries: an event replayed during its sixth attempt starts at attempt 1',
  async (t) => {
    const { endpoint, start, finish, state } = await setUp(1)
    const job = await aJob('pool-1')
    await sql`
    update app.webhook_deliveries set attempts = 5
    where endpoint_id = core.decode_id('we', ${endpoint.id})`
    const [last] = await start(job, 'pool-1')
    if (!last) throw new Error('nothing was due')
    t.equal(last.attempt, 6)
    await sql`select ops.replay_event(core.encode_id('evt', ${last.eventId}::uuid))`
    await finish(last, 'responded 500')
    t.match(await start(job, 'pool-1'), [{ eventId: last.eventId, attempt: 1, body: last.body }])
    t.equal((await state()).waiting, 1)
  },
)

t.test(
  'finish_deliveries: the last result of a batch sets the state of the endpoint',
  async (t) => {
    const { endpoint, start, state } = await setUp(3)
    const job = await aJob('pool-1')
    const results = (...errors: (string | null)[]) =>
      start(job, 'pool-1').then((deliveries) =>
        call('finish_deliveries', {
          results: anyJson(
            errors.map((error, place) => ({
              endpoint_id: deliveries[place]?.endpointId,
              event_id: deliveries[place]?.eventId,
              attempt: deliveries[place]?.attempt,
              started_at: deliveries[place]?.startedAt,
              duration_ms: 1,
              error,
            })),
          ),
        }),
      )
    const longAgo = new Date('2026-01-01T00:00:00Z')
    const failFor = () => sql`
    update app.webhook_endpoints set failing_since = ${longAgo}, warned_at = ${longAgo}
    where id = core.decode_id('we', ${endpoint.id})`
    await failFor()
    await results('one')
    t.match(await state(), { failingSince: longAgo, warnedAt: longAgo, lastError: 'one' })
    t.equal(await results(null, 'two'), 1)
    const { failingSince } = await state()
    t.ok(Number(failingSince) > Number(longAgo), 'a success resets the time')
    t.match(await state(), { warnedAt: null, lastError: 'two' })
    await addEvents(sql, [endpoint], 2)
    await failFor()
    t.equal(await results('three', null), 1)
    t.match(await state(), { failingSince: null, warnedAt: null, lastError: null })
  },
)
