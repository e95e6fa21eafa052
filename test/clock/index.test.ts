import { PgBoss } from 'pg-boss'
import { pino } from 'pino'
import t from 'tap'
import { recordRun } from '../../src/clock/index.ts'
import { scheduledTasks } from '../../src/clock/tasks.ts'
import { type Call, caller } from '../../src/db/call.ts'
import { createDatabase } from '../fixtures/database.ts'
import { spawnService } from '../fixtures/processes.ts'
import { runTask, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

type Row = {
  task: string
  schedule: string
  lastRun: Date | null
  rows: number | null
  error: string | null
}

const clockRows = async () =>
  new Map((await sql<Row[]>`select * from ops.clock`).map((row) => [row.task, row]))

t.test('two clocks list their tasks, and each run happens once', async (t) => {
  const clocks = [
    await startTestService(url, { roles: ['clock'] }),
    await startTestService(url, { roles: ['clock'] }),
  ]
  const before = await clockRows()
  t.same(
    [...before.values()].map(({ task, schedule }) => [task, schedule]).sort(),
    scheduledTasks.map(({ name, schedule }) => [name, schedule]).sort(),
  )

  // The jobs that pg-boss adds each minute.
  const boss = new PgBoss({ connectionString: url, schedule: false, supervise: false })
  await boss.start()
  t.teardown(() => boss.stop({ graceful: false }))
  for (const { name } of scheduledTasks) await boss.send(name)
  await until('a run of each', async () =>
    [...(await clockRows()).values()].every(({ lastRun }) => lastRun !== null),
  )
  // Runs of the schedule itself are among both counts.
  await until('as many runs of each as jobs', async () => {
    const wrong = await sql`
      select from app.scheduled_tasks t
      where (select count(*) from app.task_runs r where r.task = t.name)
        <> (select count(*) from pgboss.job j where j.name = t.name and j.state = 'completed')
        or exists (select from pgboss.job j where j.name = t.name and j.state <> 'completed')`
    return wrong.length === 0
  })
  for (const row of (await clockRows()).values()) {
    t.type(row.rows, 'number', row.task)
    t.equal(row.error, null)
  }
  // Their runs would affect the tests below.
  for (const clock of clocks) await clock.stop()
})

t.test('a clock that cannot start exits 1', { timeout: 120_000 }, async (t) => {
  await sql`revoke execute on function api.set_scheduled_tasks from postgram_service`
  t.teardown(() => sql`grant execute on function api.set_scheduled_tasks to postgram_service`)
  await t.rejects(spawnService(url, 'clock'), /ended with 1/)
})

t.test(
  'a failed run is recorded with its error, and the check fails until a run succeeds',
  async (t) => {
    const tools = { call: caller(sql), log: pino({ level: 'silent' }) }
    const okAfter = async (run: () => Promise<number>) => {
      await recordRun(tools, 'make-partitions', run).catch(() => undefined)
      const [check] = await sql`select ok from ops.checks where name = 'scheduled tasks'`
      return check?.ok
    }
    const failure = new Error(`no room\0 left ${'x'.repeat(600)}`)
    t.equal(await okAfter(() => Promise.reject(failure)), false)
    await t.rejects(
      recordRun(tools, 'make-partitions', () => Promise.reject(failure)),
      failure,
    )
    const failed = (await clockRows()).get('make-partitions')
    t.equal(failed?.rows, null)
    t.match(failed?.error, /^no room\uFFFD left x+$/)
    t.equal(await okAfter(async () => 7), true)
    t.match((await clockRows()).get('make-partitions'), { rows: 7, error: null })
  },
)

t.test('a task processes a whole backlog, and ends while work keeps arriving', async (t) => {
  const run = (name: string, found: number[]) => {
    let calls = 0
    const call = async () => {
      if (calls === found.length + 10) throw new Error('the task does not end')
      return found[calls++] ?? 3
    }
    return runTask(name, { call: call as unknown as Call })
  }
  for (const name of ['enqueue-due-messages', 'sum-status-changes', 'delete-old-callbacks']) {
    t.equal(await run(name, [20_000, 20_000, 20_000, 17]), 60_017, name)
    t.equal(await run(name, [3]), 3, name)
    t.equal(await run(name, [0]), 0, name)
  }
})

t.test('records of runs are deleted after a week', async (t) => {
  await sql`
    insert into app.task_runs (task, started_at, duration_ms, rows)
    select 'make-partitions', now() - a.age, 1, 0
    from unnest(array['6 days 23 hours', '7 days 1 hour']::interval[]) a (age)`
  t.same(await sql`select api.delete_old_task_runs() as deleted`, [{ deleted: 1 }])
})
