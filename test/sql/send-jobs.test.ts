import t from 'tap'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anEmail } from '../fixtures/http.ts'
import {
  acceptTogether,
  jobsOf,
  messageOf,
  send,
  sendBatch,
  sendSmsBatch,
} from '../fixtures/messages.ts'
import { createOrganisation, createPayer } from '../fixtures/organisation.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'

// Only the API runs, so the queue changes only as a test says.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const call = serviceCall(url)

type Job = { task: string; priority: number; messages: number; organisations: number }

const empty = () => sql`delete from graphile_worker._private_jobs`
t.beforeEach(empty)

const batchOf = (count: number) => Array.from({ length: count }, () => ({}))

const jobs = () => sql<Job[]>`
  select t.identifier as task, j.priority, count(*)::integer as messages,
    count(distinct m.organisation_id)::integer as organisations
  from core.message_jobs() i
  join graphile_worker._private_jobs j on j.id = i.job_id
  join graphile_worker._private_tasks t on t.id = j.task_id
  join app.messages m on m.id = i.message_id
  group by j.id, t.identifier, j.priority
  order by j.priority, j.id`

const tasks = async () => [...new Set((await jobs()).map(({ task }) => task))].sort()

t.test('core.send_jobs(): a batch gets a job for up to 8 messages of a priority', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(base, organisation, batchOf(250))
  const all = await jobs()
  t.ok(all.every(({ messages }) => messages <= 8))
  t.ok(all.length < 250 / 8 + 3)
  const waiting = Map.groupBy(all, ({ priority }) => priority)
  t.same(
    [...waiting].map(([priority, group]) => [
      priority,
      group.reduce((sum, { messages }) => sum + messages, 0),
    ]),
    [
      [0, 99],
      [1, 100],
      [2, 51],
    ],
  )
  for (const id of ids) t.equal((await jobsOf(sql, id)).length, 1)
})

t.test('core.send_jobs(): one message gets a job that every version takes', async (t) => {
  await send(base, await createOrganisation(sql))
  t.match(await jobs(), [{ task: 'send_email', messages: 1 }])
})

t.test('core.send_jobs(): messages of several organisations share a job', async (t) => {
  const organisations = [await createOrganisation(sql), await createOrganisation(sql)]
  const loud = await createOrganisation(sql)
  await sendBatch(base, loud, batchOf(150))
  await empty()
  await acceptTogether(
    sql,
    [...organisations, loud].map((organisation, n) => ({
      organisation,
      key: `key ${n}`,
      email: anEmail(organisation.domain),
    })),
  )
  t.match(
    await jobs(),
    [
      { task: 'send_emails', priority: 0, messages: 2, organisations: 2 },
      { task: 'send_email', priority: 1, messages: 1 },
    ],
    'but not with one whose backlog gives it another priority',
  )
})

t.test('core.send_jobs(): workers that take no such job get jobs of one message', async (t) => {
  const organisation = await createPayer(sql, { included: 1000 })
  const accept = async () => {
    await empty()
    await sendBatch(base, organisation, batchOf(3))
    await sendSmsBatch(base, organisation, batchOf(3))
    return tasks()
  }
  t.same(await accept(), ['send_emails', 'send_sms_messages'], 'no worker is running')

  await sendHeartbeat(call, 'worker')
  t.same(await accept(), ['send_email', 'send_sms_messages'])
  const names = ['send_email', 'send_emails']
  const present = { pool_id: 'another-worker', host: 'here', pid: 2, version: '1', tasks: names }
  await call('record_heartbeat', { ...present, roles: ['worker'], sent_at: new Date() })
  t.same(await accept(), ['send_emails', 'send_sms_messages'], 'a worker of this version has come')
  await call('deregister', { pool_id: 'another-worker' })
  t.same(await accept(), ['send_email', 'send_sms_messages'], 'and has gone')
  await call('deregister', { pool_id: 'the-test-itself' })

  await sendHeartbeat(call, 'sms')
  t.same(await accept(), ['send_emails', 'send_sms'])
  await call('deregister', { pool_id: 'the-test-itself' })
})

t.test('enqueue_due_messages: splits waiting jobs that no worker takes', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(base, organisation, batchOf(105))
  await sql`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a-pool'
    where id = (select min(j.job_id) from core.message_jobs() j where j.priority = 1)`
  t.equal(await call('enqueue_due_messages', {}), 0, 'no worker is running')
  await sendHeartbeat(call)
  t.equal(await call('enqueue_due_messages', {}), 99)
  t.equal(await call('enqueue_due_messages', {}), 0)
  const left = (await jobs()).filter(({ task }) => task === 'send_emails')
  t.match(left, [{ priority: 1, messages: 6 }], 'a job in progress is left to its worker')
  for (const id of ids) {
    const [job, ...more] = await jobsOf(sql, id)
    t.equal(job?.priority, ids.indexOf(id) < 99 ? 0 : 1)
    t.same(more, [])
  }
  await call('deregister', { pool_id: 'the-test-itself' })
})

t.test('ops.why(), ops.queue, metrics: count the messages of a job', async (t) => {
  const organisation = await createOrganisation(sql)
  const first = await sendBatch(base, organisation, batchOf(20))
  const second = await sendBatch(base, organisation, batchOf(2))
  const why = async (id: string) => (await sql`select ops.why(${id}) as why`)[0]?.why
  await sendHeartbeat(call, 'worker', ['send_email', 'send_emails'])
  t.equal(await why(first[0] ?? ''), 'The message waits behind 0 messages.')
  t.equal(await why(second[1] ?? ''), 'The message waits behind 20 messages.')
  const [queue] = await sql`
    select waiting::integer, running::integer, failed::integer from ops.queue where task = 'send_emails'`
  t.same(queue, { waiting: 22, running: 0, failed: 0 })
  const metrics = await call('metrics', {})
  const gauge = metrics.find(
    ({ name, labels }) =>
      name === 'queue_jobs' &&
      JSON.stringify(labels).match(/"send_emails".*waiting|waiting.*"send_emails"/),
  )
  t.equal(gauge?.value, 22)
  await call('deregister', { pool_id: 'the-test-itself' })
})

t.test(
  'core.job_of(), ops.stuck_messages, ops.after_restore(): find messages of a job',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const ids = await sendBatch(base, organisation, batchOf(3))
    const uuids = await Promise.all(ids.map(async (id) => (await messageOf(sql, id)).id))
    await sql`update app.messages set created_at = created_at - interval '10 minutes' where id = any (${uuids})`
    const stuck = await sql<
      { id: string }[]
    >`select id from ops.stuck_messages where id = any (${ids})`
    t.same(stuck.map(({ id }) => id).sort(), [...ids].sort())
    const [found] = await sql`
    select count(distinct (core.job_of(m)).id)::integer as jobs, count((core.job_of(m)).id)::integer as messages
    from app.messages m where m.id = any (${uuids})`
    t.same(found, { jobs: 1, messages: 3 })
    t.equal((await sql`select ops.after_restore() as messages`)[0]?.messages, 3)
  },
)

t.test('core.retry_messages(): a job that waits for a worker keeps its place', async (t) => {
  const organisation = await createOrganisation(sql)
  const [id = '', other = ''] = await sendBatch(base, organisation, batchOf(2))
  const before = await jobsOf(sql, id)
  await sql`select ops.retry_message(${id})`
  t.same(await jobsOf(sql, id), before)
  await sql`update graphile_worker._private_jobs set run_at = now() + interval '1 hour', attempts = 3`
  await sql`select ops.retry_message(${id})`
  const [job, ...more] = await jobsOf(sql, id)
  t.same(more, [])
  t.match(job, { id: before[0]?.id, attempts: 0 })
  t.ok(job && job.runAt < new Date(Date.now() + 1000))
  t.equal((await jobsOf(sql, other))[0]?.id, job?.id)
})

t.test(
  'ops.erase_person(): a running job of several keeps a message from being ended',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const people = ['jane.group@c.example', 'joe.group@c.example']
    const [id = ''] = await sendBatch(
      base,
      organisation,
      people.map((to) => ({ to })),
    )
    const { id: uuid } = await messageOf(sql, id)
    await sql`update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a-pool'`
    await sql`update app.messages set attempt_started_at = now(), attempts = 1 where id = ${uuid}`
    await t.rejects(async () => sql`select ops.erase_person(${people[0] ?? ''})`, {
      message: /^an attempt to send a message to them is running/,
    })
  },
)
