// "npm run bench -- --growth" measures the same work on an empty database and on one with many messages, waiting jobs,
// organisations and suppressions, in one run.
import { setTimeout as pause } from 'node:timers/promises'
import { formatTable } from '../../src/cli/table.ts'
import { batchesOf } from './accept.ts'
import { enqueue } from './fill.ts'
import { insertHistory } from './history.ts'
import { here, load, start, startApi, startRoles, stop } from './processes.ts'
import type { Bench } from './setup.ts'
import { allDelivered, createEndpoints, recordSent, startReceiver } from './webhooks.ts'

const COUNTS = {
  messages: Number(process.env.BENCH_MESSAGES ?? 10_000_000),
  jobs: Number(process.env.BENCH_JOBS ?? 1_000_000),
  organisations: Number(process.env.BENCH_ORGANISATIONS ?? 10_000),
  suppressions: Number(process.env.BENCH_SUPPRESSIONS ?? 1_000_000),
}

/** Over how many days before now the messages are spread. */
const DAYS = 90

/** More than are attempted while that is measured. */
const QUEUED = 100_000

const DELIVERIES = 40_000

/**
 * What is measured, in the order in which it is: the number of messages or events a second. Attempts come first, because
 * only they find the jobs that the database was filled with.
 */
const WORK = {
  attempts,
  'single accepts': singleAccepts,
  'batches of 1 000': batches,
  'webhook deliveries': deliveries,
  'all roles': allRoles,
} satisfies Record<string, (bench: Bench, seconds: number) => Promise<number>>

/** Prints what the same work takes before and after the database was filled. */
export async function printGrowth(bench: Bench, seconds: number) {
  const empty = await measureAll(bench, seconds)
  await fillAll(bench)
  const filled = await measureAll(bench, seconds)
  const rows = Object.keys(WORK).map((work, n) => ({
    'per second': work,
    empty: Math.round(empty[n] ?? 0),
    filled: Math.round(filled[n] ?? 0),
    ratio: ((filled[n] ?? 0) / (empty[n] ?? 0)).toFixed(2),
    goal: '0.80',
  }))
  console.log(formatTable(rows, Object.keys(rows[0] ?? {})))
}

async function measureAll(bench: Bench, seconds: number): Promise<number[]> {
  const results: number[] = []
  await settle(bench)
  for (const measure of Object.values(WORK)) {
    results.push(await measure(bench, seconds))
    await endWork(bench)
  }
  return results
}

/**
 * Defers the messages that are left until tomorrow, without jobs as the service does it, and deletes the endpoints, so
 * that the next work is alone.
 */
async function endWork({ sql }: Bench) {
  await sql.begin(async (tx) => {
    await tx`
      insert into app.due_messages (message_id, organisation_id, priority, due_at)
      select m.id, m.organisation_id, j.priority, now() + interval '1 day'
      from core.message_jobs() j
      join app.messages m on m.id = j.message_id
      on conflict do nothing`
    await tx`delete from graphile_worker._private_jobs`
  })
  await sql`delete from app.webhook_endpoints`
  await sql`vacuum analyze graphile_worker._private_jobs, app.due_messages`
}

async function fillAll(bench: Bench) {
  const { sql } = bench
  await sql`
    select count(ops.create_organisation('Filled ' || n, 'owner@example.com', 'bench'))
    from generate_series(1, ${COUNTS.organisations}::integer) n`
  await sql`select api.seal_audit()`
  const receiverless = 'http://127.0.0.1:9/hook'
  await createEndpoints(bench, receiverless, ['email.sent', 'email.delivered'])
  const organisations = await sql<
    { id: string }[]
  >`select distinct organisation_id as id from app.domains`
  const shares = new Map(organisations.map(({ id }) => [id, 1 / organisations.length]))
  await insertHistory(sql, { messages: COUNTS.messages, days: DAYS, shares })
  await sql`
    insert into app.suppressions (organisation_id, id, email, reason, created_at)
    select d.organisation_id, core.new_id(now() - n * interval '1 second'), format('filled%s@f.example', n), 'manual', now()
    from (select organisation_id, row_number() over () - 1 as place, count(*) over () as number from app.domains) d
    join generate_series(1, ${COUNTS.suppressions}::integer) n on n % d.number = d.place`
  await enqueue(bench, 'emails', COUNTS.jobs)
  await sql`delete from app.webhook_endpoints`
  await sql`vacuum analyze`
}

/**
 * Waits until the scheduled tasks have counted, indexed and sealed what earlier work and the fill left, and autovacuum is
 * through: a service in use does this all the time, and what is measured next would do all of it at once.
 */
async function settle(bench: Bench) {
  const clock = startRoles(bench, ['--only', 'clock'])
  clock.stdout?.resume()
  for (;;) {
    await pause(2000)
    const [left] = await bench.sql<{ isAny: boolean }[]>`
      select exists (select from app.status_changes)
        or exists (select from app.webhook_endpoints e where e.secret_sealed_by is null)
        or exists (select from app.audit a where a.seal_id is null)
        or exists (select from app.messages m, app.search_progress p where p.pass = 'accepted' and m.id > p.indexed_until)
        or exists (select from pg_stat_activity a where a.backend_type = 'autovacuum worker') as is_any`
    if (!left?.isAny) break
  }
  await stop(clock)
}

async function singleAccepts(bench: Bench, seconds: number) {
  const senders = bench.senders.emails
  return apiAlone(bench, { path: '/v1/emails', senders, connections: 64, seconds })
}

async function batches(bench: Bench, seconds: number) {
  const senders = batchesOf(bench, 'emails')
  const calls = { path: '/v1/emails/batch', senders, connections: 2, seconds }
  return 1000 * (await apiAlone(bench, calls))
}

async function apiAlone(bench: Bench, plan: Omit<Parameters<typeof load>[0], 'port'>) {
  const api = await startApi(bench, ['--only', 'api'])
  const { answered } = await load({ ...plan, port: api.port })
  await stop(api.child)
  return answered / plan.seconds
}

/** The jobs that the database was filled with are due, and as many as are needed on an empty one. */
async function attempts(bench: Bench, seconds: number) {
  const { sql } = bench
  await enqueue(bench, 'emails', QUEUED)
  await sql`vacuum analyze graphile_worker._private_jobs`
  const first = await dequeued(bench)
  const worker = start([here('worker.ts'), bench.url, 'coalesced'])
  // Once some thousand are sent, the worker has compiled what it needs.
  while ((await dequeued(bench)) < first + QUEUED / 20) await pause(20)
  const from = await dequeued(bench)
  const startedAt = performance.now()
  await pause(seconds * 1000)
  const sent = (await dequeued(bench)) - from
  const took = performance.now() - startedAt
  await stop(worker)
  return (1000 * sent) / took
}

async function dequeued({ sql }: Bench): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select sum(messages_dequeued)::float8 as count from app.counters`
  return row?.count ?? 0
}

async function deliveries(bench: Bench) {
  const { sql } = bench
  const receiver = await startReceiver()
  await createEndpoints(bench, receiver.url, ['email.sent'])
  const since = new Date()
  await enqueue(bench, 'emails', DELIVERIES)
  await recordSent(bench, since)
  // Without these jobs the worker only delivers.
  await sql`
    delete from graphile_worker._private_jobs j using graphile_worker._private_tasks t
    where t.id = j.task_id and t.identifier not like 'deliver_%'`
  const worker = start([here('worker.ts'), bench.url, 'coalesced'])
  await allDelivered(bench)
  await stop(worker)
  await stop(receiver.child)
  const [took] = await sql<{ perSecond: number }[]>`
    select (count(*) / extract(epoch from max(started_at) - min(started_at)))::float8 as per_second
    from app.webhook_attempts
    where event_id >= core.first_id_at(${since})`
  return took?.perSecond ?? 0
}

async function allRoles(bench: Bench, seconds: number) {
  const { sql } = bench
  const receiver = await startReceiver()
  await createEndpoints(bench, receiver.url, ['email.sent', 'email.delivered'])
  await settle(bench)
  const service = await startApi(bench, [])
  const senders = bench.senders.emails
  const since = new Date()
  await load({ path: '/v1/emails', senders, connections: 64, port: service.port, seconds })
  for (;;) {
    const [left] = await sql<{ isAny: boolean }[]>`
      select exists (
        select from app.messages m where m.id >= core.first_id_at(${since}) and m.status <> 'delivered'
      ) as is_any`
    if (!left?.isAny) break
    await pause(200)
  }
  await allDelivered(bench)
  const [took] = await sql<{ perSecond: number }[]>`
    select (
      (select count(*) from app.messages m where m.id >= core.first_id_at(${since}))
      / extract(epoch from max(a.started_at + a.duration_ms * interval '1 millisecond') - min(a.started_at)))::float8 as per_second
    from app.webhook_attempts a
    where a.event_id >= core.first_id_at(${since})`
  await stop(service.child)
  await stop(receiver.child)
  return took?.perSecond ?? 0
}
