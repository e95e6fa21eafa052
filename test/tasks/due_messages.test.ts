import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf, messageOf, send, sendBatch, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, liftRate, type TestOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { runTask, sendHeartbeat, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const api = await startTestService(url, { roles: ['api'] })
const call = serviceCall(url)

const provider = createStandIn()
/** Runs a worker for as long as `work` takes. */
async function withWorker<Result>(work: () => Promise<Result>): Promise<Result> {
  const worker = await startTestService(url, {
    roles: ['worker'],
    createEmailProvider: () => provider,
  })
  try {
    return await work()
  } finally {
    await worker.stop()
  }
}

const heldOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql<{ held: number }[]>`
    select count(*)::integer as held from app.due_messages
    where organisation_id = core.decode_id('org', ${id}) and due_at is null`
  return row?.held
}

const pause = ({ id }: TestOrganisation) => sql`select ops.pause(${id}, 'a test')`
const suspend = ({ id }: TestOrganisation) => sql`select ops.suspend(${id}, 'a test')`
const resume = async ({ id }: TestOrganisation) => {
  const [row] = await sql<{ released: number }[]>`select ops.resume(${id}) as released`
  return row?.released
}

/** Resolves once all have this status and no job is left. */
const all = (ids: string[], status: string) =>
  until(`all to be ${status}`, async () => {
    const messages = await Promise.all(ids.map((id) => messageOf(sql, id)))
    const jobs = await Promise.all(ids.map((id) => jobsOf(sql, id)))
    return messages.every((message) => message.status === status) && jobs.flat().length === 0
  })

const statusesOf = async (ids: string[]) =>
  new Set((await Promise.all(ids.map((id) => messageOf(sql, id)))).map(({ status }) => status))

t.test('queued messages wait while their organisation is paused', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(api.base, organisation, [{}, {}, {}, {}, {}])
  await pause(organisation)
  const email = anEmail(organisation.domain)
  t.equal((await post(`${api.base}/v1/emails`, organisation.liveKey, email)).status, 423)
  t.equal((await post(`${api.base}/v1/emails`, organisation.testKey, email)).status, 200)

  await withWorker(async () => {
    // A later message of another organisation shows that these were taken and held.
    const other = await send(api.base, await createOrganisation(sql))
    await all([other], 'sent')
    await until('all to be held', async () => (await heldOf(organisation)) === ids.length)
    await all(ids, 'queued')
  })
  t.match(await messageOf(sql, ids[0] ?? ''), { attempts: 0, attemptStartedAt: null })
  t.equal(await backlogOf(sql, organisation), ids.length)
  t.equal(await call('enqueue_due_messages', {}), 0, 'the clock does not release them')
  t.equal(await heldOf(organisation), ids.length)

  t.equal(await resume(organisation), ids.length)
  t.equal(await heldOf(organisation), 0)
  await withWorker(() => all(ids, 'sent'))
  t.equal(await backlogOf(sql, organisation), 0)
  const { id: uuid } = await messageOf(sql, ids[0] ?? '')
  t.equal(provider.handed.filter((handed) => handed === uuid).length, 1)
})

t.test('a message held during a concurrent resumption is released by the clock', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(api.base, organisation)
  const { id: uuid } = await messageOf(sql, id)
  await pause(organisation)
  // The job is taken while the resumption is not committed yet, and finds it paused.
  await sql.begin(async (tx) => {
    t.match(await tx`select ops.resume(${organisation.id}) as released`, [{ released: 0 }])
    t.same(await call('start_emails', { ids: [uuid] }), [])
  })
  await sql`delete from graphile_worker._private_jobs where payload ->> 'id' = ${uuid}`
  t.equal(await heldOf(organisation), 1)
  await sendHeartbeat(call)
  t.match(await sql`select ops.why(${id})`, [
    {
      why: 'The message was held while its organisation was paused; the clock releases it within a minute.',
    },
  ])
  await call('deregister', { pool_id: 'the-test-itself' })

  t.equal(await runTask('enqueue-due-messages', { call }), 1)
  t.equal(await heldOf(organisation), 0)
  await withWorker(() => all([id], 'sent'))
})

t.test('a message that was deferred twice is sent once', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(api.base, organisation)
  const { id: uuid } = await messageOf(sql, id)
  await pause(organisation)
  await call('start_emails', { ids: [uuid] })
  await call('start_emails', { ids: [uuid] })
  t.equal(await heldOf(organisation), 1)
  // The job that found it paused was not completed either, as after a crash.
  t.equal(await resume(organisation), 1)
  t.equal((await jobsOf(sql, id)).length, 2)
  await withWorker(() => all([id], 'sent'))
  t.equal(provider.handed.filter((handed) => handed === uuid).length, 1)
})

t.test('queued messages of a suspended organisation are rejected', async (t) => {
  const [suspended, active] = [await createOrganisation(sql), await createOrganisation(sql)]
  const ids = await sendBatch(api.base, suspended, [{}, {}, {}])
  const others = await sendBatch(api.base, active, [{}, {}, {}])
  await suspend(suspended)
  await withWorker(async () => {
    await all(others, 'sent')
    await all(ids, 'rejected')
  })
  for (const id of ids) {
    const message = await messageOf(sql, id)
    t.match(message, { errorCode: 'org_suspended', sentAt: null, attempts: 0 })
    t.notOk(provider.handed.includes(message.id))
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      { type: 'rejected', detail: { code: 'org_suspended' } },
    ])
  }
  t.equal(await backlogOf(sql, suspended), 0)
  t.equal(await backlogOf(sql, active), 0)

  await sql`select ops.reinstate(${suspended.id})`
  t.same(await statusesOf(ids), new Set(['rejected']), 'and stays rejected')
  await withWorker(async () => all([await send(api.base, suspended)], 'sent'))
})

t.test(
  'paused, suspended and reinstated: new sends are refused and the queue waits until the resumption',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const early = await send(api.base, organisation)
    await pause(organisation)
    await suspend(organisation)
    await withWorker(() => all([early], 'rejected'))
    await sql`select ops.reinstate(${organisation.id})`
    const email = anEmail(organisation.domain)
    t.equal((await post(`${api.base}/v1/emails`, organisation.liveKey, email)).status, 423)
    await resume(organisation)
    t.equal((await post(`${api.base}/v1/emails`, organisation.liveKey, email)).status, 200)
  },
)

t.test('resume() does not let a suspended organisation send', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(api.base, organisation)
  await pause(organisation)
  await suspend(organisation)
  await resume(organisation)
  const email = anEmail(organisation.domain)
  t.equal((await post(`${api.base}/v1/emails`, organisation.liveKey, email)).status, 403)
  await withWorker(() => all([id], 'rejected'))
})

t.test('messages of a paused organisation are rejected when it is suspended', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(api.base, organisation, [{}, {}])
  await pause(organisation)
  await withWorker(() => until('held', async () => (await heldOf(organisation)) === ids.length))
  await suspend(organisation)
  t.equal(await heldOf(organisation), 0)
  await withWorker(() => all(ids, 'rejected'))
  t.equal(await backlogOf(sql, organisation), 0)
})

const organisation = await createOrganisation(sql)
await liftRate(sql, organisation)

/** Creates a message that waits outside the job table; returns its id and the recorded time. */
async function aDueMessage(delay: string, priority = 7) {
  const id = await send(api.base, organisation)
  const { id: uuid } = await messageOf(sql, id)
  await sql`
    select core.leave_jobs(array[${uuid}::uuid], array_agg(j.job_id))
    from core.message_jobs() j where j.message_id = ${uuid}`
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
    select count(*)::integer as jobs, count(distinct message_id)::integer as messages from core.message_jobs()`
  t.same(row, { jobs: 45_000, messages: 45_000 })
  const waiting = await sql`select from app.due_messages`
  t.equal(waiting.length, 1)
})
