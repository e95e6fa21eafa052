import { systemClock } from 'pg-boss'
import t from 'tap'
import { scheduledTasks } from '../../src/clock/tasks.ts'
import { createDatabase } from '../fixtures/database.ts'
import { sendSms } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

const daily = scheduledTasks.filter(({ schedule }) => /^\d+ \d+ /.test(schedule))
const minutely = scheduledTasks.filter(({ schedule }) => schedule === '* * * * *')

/** For each task the minutes for which pg-boss started it, and how often it ran. */
async function runsOfTasks() {
  const rows = await sql<{ task: string; minutes: string[]; runs: number }[]>`
    select t.name as task,
      array(select j.data ->> 'slot' from pgboss.job j
        where j.name = '__pgboss__send-it' and j.data ->> 'name' = t.name order by 1) as minutes,
      (select count(*)::integer from app.task_runs r where r.task = t.name) as runs
    from app.scheduled_tasks t`
  return rows
}

/** Returns the runs of these tasks, once each has at least `least` and all have ended. */
const ranAll = (what: string, tasks: typeof scheduledTasks, least: number) =>
  until(what, async () => {
    const rows = (await runsOfTasks()).filter(({ task }) => tasks.some(({ name }) => name === task))
    return (
      rows.every(({ minutes, runs }) => minutes.length >= least && runs >= minutes.length) && rows
    )
  })

/** Puts the time of pg-boss ahead, in this process and in the database, and runs the timers that are due by then. */
const passTime = moveClock()

function moveClock() {
  const { now, setTimeout, clearTimeout } = systemClock
  const timers = new Map<unknown, { dueAt: number; run(): void }>()
  let aheadMs = 0
  const clock: Partial<typeof systemClock> = {
    now: () => now() + aheadMs,
    setTimeout(run, ms) {
      const timer = setTimeout(() => {
        timers.delete(timer)
        run()
      }, ms)
      timers.set(timer, { dueAt: now() + aheadMs + ms, run })
      return timer
    },
    clearTimeout(timer) {
      timers.delete(timer)
      clearTimeout(timer)
    },
  }
  for (const [name, value] of Object.entries(clock)) {
    t.intercept(systemClock, name as keyof typeof systemClock, { value })
  }
  return async (ms: number) => {
    aheadMs += ms
    await sql.unsafe(`
      create or replace function pgboss.job_now() returns timestamptz language sql stable as
      $$ select now() + interval '${aheadMs} ms' $$`)
    for (const [timer, { dueAt, run }] of [...timers]) {
      if (dueAt > now() + aheadMs) continue
      systemClock.clearTimeout(timer)
      run()
    }
  }
}

t.test('missed runs are caught up at the next start, with one run for each task', async (t) => {
  const { base } = await startTestService(url, { roles: ['api'] })
  const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
  await sendSms(base, await createOrganisation(sql), { scheduledAt })
  const { stop } = await startTestService(url, { roles: ['clock'] })
  await stop()

  // As if two days had passed.
  await sql`update app.due_messages set due_at = now() - interval '1 day'`
  await sql`update pgboss.version set cron_on = now() - interval '2 days'`
  await sql`update pgboss.schedule set created_on = now() - interval '3 days'`
  await sql`delete from pgboss.job`
  await sql`delete from app.task_runs`

  await startTestService(url, { roles: ['clock'] })
  await startTestService(url, { roles: ['clock'] })
  for (const { task, minutes, runs } of await ranAll('the missed daily runs', daily, 1)) {
    t.equal(runs, minutes.length, task)
    t.ok(minutes.length < 3, `${task}: one for all missed runs, and at most one for this minute`)
  }
  await ranAll('the runs of this minute', minutely, 1)
  t.same([...(await sql`select from app.due_messages`)], [])
  const jobs = await sql`select from graphile_worker.jobs where task_identifier = 'send_sms'`
  t.equal(jobs.length, 1)
})

t.test('with two clocks each task runs once a minute', async (t) => {
  let rows = await ranAll('the runs so far', minutely, 1)
  for (const minute of ['the next minute', 'the minute after it']) {
    const most = Math.max(...rows.map(({ minutes }) => minutes.length))
    // Both clocks look for due runs at this moment.
    await passTime(60_000)
    rows = await ranAll(minute, minutely, most + 1)
  }
  for (const { task, minutes, runs } of rows) {
    t.same(minutes, [...new Set(minutes)], task)
    t.equal(runs, minutes.length, task)
  }
})
