import { hostname } from 'node:os'
import t from 'tap'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { endWaiting, holdSandbox } from '../fixtures/load.ts'
import { sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const api = await startTestService(url, { roles: ['api'] })
const call = serviceCall(url, { max: 1 })

type Process = { pool: string; roles: string[]; host: string; pid: number; isAlive: boolean }

const processOf = async (pid: number | undefined) => {
  const [row] = await sql<Process[]>`
    select pool, roles, host, pid, is_alive from ops.processes
    where pid = ${pid ?? 0} and not roles && '{api,sms,webhooks,upkeep}'`
  return row
}

const lockHolder = async (pool: string) => {
  const [row] = await sql<{ pid: number | null }[]>`select core.lock_holder(${pool}) as pid`
  return row?.pid ?? null
}

const lockedBy = async (pool: string) => {
  const [row] = await sql<{ jobs: number }[]>`
    select coalesce(sum(core.job_size(payload)), 0)::integer as jobs from graphile_worker._private_jobs where locked_by = ${pool}`
  return row?.jobs ?? 0
}

const messages = (count: number) =>
  Array.from({ length: count }, () => ({ to: 'delivered@sandbox.postgram.test' }))

/** Sends a heartbeat of another process, which every process does every 2 s. */
const sweepOnce = () => sendHeartbeat(call, 'api')

t.test('killed process: is removed from the list, and its jobs are released', async (t) => {
  const worker = await spawnService(url, 'worker', { WORKER_CONCURRENCY: '20' })
  const { pid } = worker.child
  const listed = await processOf(pid)
  t.match(listed, { roles: ['worker'], host: hostname(), pid, isAlive: true })
  const pool = listed?.pool ?? ''

  const [ids, killedAt] = await sql.begin(async (tx) => {
    await holdSandbox(tx)
    const ids = await sendBatch(api.base, await createOrganisation(sql), messages(60))
    await until('jobs in hand', async () => (await lockedBy(pool)) >= 20)
    // A process whose lock is held is not removed, however late its last heartbeats were.
    await tx`select from app.processes where pool_id = ${pool} for update`
    await worker.end('SIGKILL')
    t.ok(await processOf(pid), 'its row outlives it')
    await endWaiting(tx)
    return [ids, performance.now()] as const
  })
  await until('the sweep', async () => !(await processOf(pid)))
  const seconds = (performance.now() - killedAt) / 1000
  t.comment(`swept after ${seconds.toFixed(1)} s`)
  t.equal(await lockedBy(pool), 0)
  const [left] = await sql<{ free: number; queued: number }[]>`
    select
      (select coalesce(sum(core.job_size(payload)), 0)::integer from graphile_worker._private_jobs where locked_at is null) as free,
      (select count(*)::integer from app.messages where status = 'queued') as queued`
  t.same(left, { free: ids.length, queued: ids.length })
  await until('the sweep of its pools for SMS and webhooks', async () => {
    const rows = await sql`select from ops.processes where pid = ${pid ?? 0}`
    return rows.length === 0
  })
})

t.test('process with a cut connection: takes its lock again and keeps its jobs', async (t) => {
  const worker = await spawnService(url, 'worker', { WORKER_CONCURRENCY: '20' })
  const pool = (await processOf(worker.child.pid))?.pool ?? ''
  const holder = await lockHolder(pool)
  t.type(holder, 'number')
  const next = await sql.begin(async (tx) => {
    await holdSandbox(tx)
    await sendBatch(api.base, await createOrganisation(sql), messages(20))
    await until('jobs in hand', async () => (await lockedBy(pool)) > 0)
    await sweepOnce()
    // Heartbeats may be late on a busy machine, but its last one is later than that of the process that sweeps.
    await sql`update app.processes set heartbeat_at = now() where pool_id = ${pool}`
    await sql`select pg_terminate_backend(${holder})`
    await until('the lock to be free', async () => (await lockHolder(pool)) !== holder)
    t.equal(await sweepOnce(), 0, 'nobody takes it for gone meanwhile')
    const holderNow = await until('the lock to be taken', () => lockHolder(pool))
    t.ok(await lockedBy(pool))
    return holderNow
  })
  t.not(next, holder)
  t.match(await processOf(worker.child.pid), { pool, isAlive: true })
  await until('the messages to be sent', async () => {
    const queued = await sql`select from app.messages where status = 'queued'`
    return queued.length === 0
  })
  const twice = await sql`select from ${takenBySandbox(sql)} s where attempts > 1`
  t.equal(twice.length, 0, 'nothing was handed over twice')
  t.equal(await worker.end('SIGTERM'), 0)
  t.equal(await processOf(worker.child.pid), undefined)
})

t.test('processes that lose their connections at once: do not remove each other', async (t) => {
  const others = [
    await startTestService(url, { roles: ['api'] }),
    await startTestService(url, { roles: ['api'] }),
  ]
  const list = () => sql<{ pool: string }[]>`
    select pool from ops.processes where pool <> 'the-test-itself' order by pool`
  const before = await list()
  t.equal(before.length, 3)
  await sql`
    select pg_terminate_backend(a.pid) from pg_stat_activity a
    where a.datname = current_database() and a.application_name = 'postgram heartbeat'`
  await sweepOnce()
  await until('all locks to be taken', async () => {
    const holders = await Promise.all(before.map(({ pool }) => lockHolder(pool)))
    return holders.every(Boolean)
  })
  t.same(await list(), before)
  for (const other of others) await other.stop()
  t.equal((await list()).length, 1, 'a process that stops is removed from the list')
})

t.test('process with heartbeats: is not removed while its lock is missing', async (t) => {
  // A lost session that the server still sees as connected holds its lock: its heartbeats continue without the lock.
  // Its last heartbeat is later than all others, however slow this test is.
  await sql`
    insert into app.processes (version, clock_offset, synchronous_commit, pool_id, roles, host, pid, heartbeat_at)
    values ('1.2.3', '0', 'on', 'pool-without-lock', '{worker}', 'elsewhere', 2, now() + interval '1 hour')`
  await sweepOnce()
  t.equal(await sweepOnce(), 0)
  t.equal((await sql`select from app.processes where pool_id = 'pool-without-lock'`).length, 1)
  await sql`
    update app.processes set heartbeat_at = now() - interval '1 hour' where pool_id = 'pool-without-lock'`
  await until('the API to remove the process', async () => {
    const rows = await sql`select from app.processes where pool_id = 'pool-without-lock'`
    return rows.length === 0
  })
  t.equal(await lockHolder('pool-without-lock'), null)
})
