import { setTimeout as pause } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { startWorkerPool } from '../../src/worker/pool.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** A log, and a function that waits for a text in it. */
function aLog() {
  const waiting: { text: string; resolve: () => void }[] = []
  const log = pino(
    {},
    {
      write: (line: string) => {
        for (const { text, resolve } of waiting) if (line.includes(text)) resolve()
      },
    },
  )
  const logged = (text: string) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ text, resolve })
    return promise
  }
  return { log, logged }
}

/** A pool with one task; `worked` resolves after `times` runs, with the pools that ran them. */
async function startPool(
  t: Test,
  register: (poolId: string) => Promise<void>,
  times = 1,
  address = url,
) {
  const { log, logged } = aLog()
  const worked = Promise.withResolvers<(string | null)[]>()
  const failed = logged('Error occurred fetching jobs')
  const holders: (string | null)[] = []
  const pool = await startWorkerPool({
    url: address,
    tasks: {
      async work_here(_, { job }) {
        holders.push(job.locked_by)
        if (holders.length === times) worked.resolve(holders)
      },
    },
    concurrency: 1,
    metrics: createMetrics({ pools: {} }),
    log,
    register,
  })
  t.teardown(() => pool.stop())
  return { worked: worked.promise, failed }
}

const hideTasks = () => sql`alter table graphile_worker._private_tasks rename to hidden_tasks`
const showTasks = () => sql`alter table graphile_worker.hidden_tasks rename to _private_tasks`
const addJobs = (count: number) =>
  sql`select graphile_worker.add_job('work_here') from generate_series(1, ${count})`

t.test('a pool whose first fetch of jobs fails is restarted', async (t) => {
  const ids: string[] = []
  await hideTasks()
  const { worked, failed } = await startPool(t, async (id) => {
    ids.push(id)
  })
  await failed
  await showTasks()
  await addJobs(1)
  await worked
  t.ok(ids.length > 1)
})

t.test(
  'a pool that failed to register takes no jobs, also after the next one registered',
  async (t) => {
    let calls = 0
    const registered: (string | null)[] = []
    await hideTasks()
    const { worked, failed } = await startPool(
      t,
      async (id) => {
        calls += 1
        if (calls === 2) await showTasks()
        if (calls === 2) throw new Error('the database is away')
        registered.push(id)
      },
      300,
    )
    await failed
    await until('the next pool to be registered', async () => registered.length > 1)
    await addJobs(300)
    t.same(new Set(await worked), new Set(registered.slice(1)))
  },
)

t.test('a pool is restarted if the connection is lost while it fetches jobs', async (t) => {
  const proxy = await startDatabaseProxy(url)
  const ids: string[] = []
  const { worked } = await startPool(
    t,
    async (id) => {
      const [former] = ids
      // As api.deregister() does.
      if (former) await sql`select graphile_worker.force_unlock_workers(array[${former}])`
      ids.push(id)
    },
    2,
    proxy.url,
  )
  await addJobs(1)
  await until('the first job', async () => {
    const [row] = await sql`select from graphile_worker._private_jobs limit 1`
    return row === undefined
  })
  // The statement locks the job; its result does not arrive.
  proxy.loseAnswerTo('get_job')
  await addJobs(1)
  t.same(await worked, ids.slice(0, 2))
})

/** Longer than a pool waits before it restarts. */
const RESTART_MS = 2500

t.test('a pool that restarts keeps its jobs until those in progress have ended', async (t) => {
  const order: string[] = []
  const again = Promise.withResolvers<void>()
  const { log, logged } = aLog()
  const failed = logged('Failed to complete jobs')
  await sql.unsafe(`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
    create trigger refuse before delete on graphile_worker._private_jobs
    for each row when (old.key = 'short') execute function public.refuse()`)
  const pool = await startWorkerPool({
    url,
    tasks: {
      short: async () => undefined,
      async long() {
        await Promise.race([failed.then(() => pause(RESTART_MS)), again.promise])
        order.push('ended')
      },
    },
    concurrency: 2,
    metrics: createMetrics({ pools: {} }),
    log,
    async register() {
      order.push('registered')
      if (order.length > 1) again.resolve()
    },
  })
  t.teardown(() => pool.stop())
  await sql`
    select graphile_worker.add_job('long'),
      graphile_worker.add_job('short', job_key => 'short')`
  await failed
  await sql`drop trigger refuse on graphile_worker._private_jobs`
  await again.promise
  t.same(order, ['registered', 'ended', 'registered'])
})
