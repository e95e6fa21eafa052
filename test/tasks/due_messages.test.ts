import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { jobsOf, messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { runTask, startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
await liftRate(sql, organisation)
const call = serviceCall(url)

/** Creates a message that waits outside the job table; returns its id and the recorded time. */
async function aDueMessage(delay: string, priority = 7) {
  const id = await send(base, organisation)
  const { id: uuid } = await messageOf(sql, id)
  await sql`delete from graphile_worker._private_jobs where payload ->> 'id' = ${uuid}`
  const [row] = await sql<{ dueAt: Date }[]>`
    insert into app.due_messages (message_id, organisation_id, due_at, priority)
    select m.id, m.organisation_id, now() + ${delay}::interval, ${priority}
    from app.messages m where m.id = ${uuid}
    returning due_at`
  return { id, uuid, dueAt: row?.dueAt as Date }
}

const isWaiting = async (id: string) => {
  const rows = await sql`
    select from app.due_messages where message_id = core.decode_id('em', ${id})`
  return rows.length === 1
}

t.test('a message due within 90 s gets a job for its exact time', async (t) => {
  const soon = await aDueMessage('80 seconds')
  const now = await aDueMessage('0 seconds', 3)
  const overdue = await aDueMessage('-1 hour')
  // Far past the limit of 90 s, as time passes before the call. scheduled_sms.test.ts tests the limit itself.
  const later = await aDueMessage('10 minutes')
  const tomorrow = await aDueMessage('24 hours')
  t.equal(await call('enqueue_due_messages', {}), 3)
  t.match(await jobsOf(sql, soon.id), [{ runAt: soon.dueAt, priority: 7, attempts: 0 }])
  t.match(await jobsOf(sql, now.id), [{ runAt: now.dueAt, priority: 3 }])
  t.match(await jobsOf(sql, overdue.id), [{ runAt: overdue.dueAt }])
  for (const { id } of [soon, now, overdue]) t.notOk(await isWaiting(id))
  for (const { id } of [later, tomorrow]) {
    t.ok(await isWaiting(id))
    t.same(await jobsOf(sql, id), [])
  }
  t.equal(await call('enqueue_due_messages', {}), 0, 'once')
  t.equal((await jobsOf(sql, soon.id)).length, 1)
  await sql`delete from app.due_messages`
})

t.test("a message is due by the service's time, its job by the server's", async (t) => {
  const shifted = connect(url, {
    role: 'postgram_service',
    clock: { 'postgram.shift': '1 hour' },
    max: 1,
  })
  const { id, dueAt } = await aDueMessage('1 hour 30 seconds')
  t.equal(await call('enqueue_due_messages', {}), 0)
  t.equal(await caller(shifted)('enqueue_due_messages', {}), 1)
  const [job] = await jobsOf(sql, id)
  t.equal(Number(job?.runAt), Number(dueAt) - 3_600_000)
  await shifted.end()
})

t.test('a due message whose message is deleted is removed', async (t) => {
  const { id, uuid } = await aDueMessage('0 seconds')
  await sql`delete from app.messages where id = ${uuid}`
  t.equal(await call('enqueue_due_messages', {}), 0)
  t.notOk(await isWaiting(id))
})

t.test('several clocks at once enqueue everything once', async (t) => {
  const messages = await Promise.all(Array.from({ length: 50 }, () => aDueMessage('30 seconds')))
  const counts = await Promise.all(
    Array.from({ length: 6 }, () => call('enqueue_due_messages', {})),
  )
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    messages.length,
  )
  for (const { id } of messages) t.equal((await jobsOf(sql, id)).length, 1)
})

t.test('enqueue-due-messages repeats until nothing is due', async (t) => {
  await sql`delete from graphile_worker._private_jobs`
  const { uuid } = await aDueMessage('1 day')
  await sql`
    with copies as (
      insert into app.messages
      select (jsonb_populate_record(m, jsonb_build_object('id', core.new_id(m.created_at)))).*
      from app.messages m, generate_series(1, 45000)
      where m.id = ${uuid}
      returning id, organisation_id
    )
    insert into app.due_messages (message_id, organisation_id, due_at, priority)
    select c.id, c.organisation_id, now(), 0 from copies c`
  t.equal(await runTask('enqueue-due-messages', { call }), 45_000)
  const [row] = await sql`
    select count(*)::integer as jobs, count(distinct payload ->> 'id')::integer as messages
    from graphile_worker._private_jobs`
  t.same(row, { jobs: 45_000, messages: 45_000 })
  const waiting = await sql`select from app.due_messages`
  t.equal(waiting.length, 1)
})
