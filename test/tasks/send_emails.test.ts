import type { Task } from 'graphile-worker'
import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import { Unreachable } from '../../src/db/connection-errors.ts'
import type { SendResult } from '../../src/providers/email.ts'
import { createPlaces, NOT_STARTED } from '../../src/providers/places.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { jobsOf, messageOf, sendBatch, sendSmsBatch } from '../fixtures/messages.ts'
import { createOrganisation, createPayer } from '../fixtures/organisation.ts'
import { createSmsStandIn, createStandIn } from '../fixtures/providers.ts'
import { anSmsWorker, aWorker, helpersOf, startTestService } from '../fixtures/service.ts'

// Only the API runs: a test runs a job by calling its task.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const call = serviceCall(url)

type Job = { id: string; task: string; payload: string[] }

/** The only job of these messages. */
async function jobOf(ids: string[]): Promise<Job> {
  const jobs = await sql<Job[]>`
    select distinct j.id, t.identifier as task, j.payload::jsonb as payload
    from core.message_jobs() i
    join graphile_worker._private_jobs j on j.id = i.job_id
    join graphile_worker._private_tasks t on t.id = j.task_id
    where core.message_id(case when t.identifier like '%sms%' then 'sms' else 'email' end::app.channel, i.message_id)
      = any (${ids}::text[])`
  const [job, ...others] = jobs
  if (!job || others.length > 0) throw new Error(`${jobs.length} jobs`)
  return job
}

/** An organisation with so many emails in one job. */
async function setUp(count: number) {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(
    base,
    organisation,
    Array.from({ length: count }, () => ({})),
  )
  const job = await jobOf(ids)
  const uuids = await Promise.all(ids.map(async (id) => (await messageOf(sql, id)).id))
  return { organisation, ids, uuids, job }
}

/** Runs a job of several as the database has it. */
async function run(task: Task, { id }: Job) {
  const [job] = await sql<Job[]>`
    select payload::jsonb as payload from graphile_worker._private_jobs where id = ${id}`
  await task(job?.payload, helpersOf(id))
}

const outcomes = ['sent', 'failed', 'deferred', 'ambiguous'] as const

t.test('send_emails: each email of a job gets its own outcome', async (t) => {
  const { ids, uuids, job } = await setUp(8)
  t.equal(job.task, 'send_emails')
  t.same(job.payload, uuids)
  const provider = createStandIn()
  const outcomeAt = (place: number) => outcomes[place % outcomes.length] ?? 'sent'
  provider.onSend = ({ id }): SendResult => ({ outcome: outcomeAt(uuids.indexOf(id)) })
  await run(aWorker(sql, call, provider).task, job)
  const statuses = { sent: 'sent', failed: 'failed', deferred: 'queued', ambiguous: 'queued' }
  for (const [place, id] of ids.entries()) {
    t.equal((await messageOf(sql, id)).status, statuses[outcomeAt(place)])
  }
  t.equal(provider.handed.length, 8)
})

t.test('send_emails: a deferred email leaves the job and has another one', async (t) => {
  const { ids, uuids, job } = await setUp(3)
  const provider = createStandIn()
  provider.onSend = ({ id }) => ({ outcome: id === uuids[1] ? 'deferred' : 'sent' })
  const { task } = aWorker(sql, call, provider)
  await run(task, job)
  t.same((await jobOf([ids[0] ?? '', ids[2] ?? ''])).payload, [uuids[0], uuids[2]])
  const [later, ...more] = await jobsOf(sql, ids[1] ?? '')
  t.not(later?.id, job.id)
  t.same(more, [], 'one job attempts it')

  // As after a crash before the job was completed.
  await run(task, job)
  t.equal(provider.handed.length, 3, 'no email is attempted again')
})

t.test('send_emails: a job whose last email is deferred is deleted', async (t) => {
  const { ids, job } = await setUp(2)
  const provider = createStandIn()
  provider.onSend = () => ({ outcome: 'deferred' })
  await run(aWorker(sql, call, provider).task, job)
  t.same(await sql`select from graphile_worker._private_jobs where id = ${job.id}`, [])
  for (const id of ids) t.equal((await jobsOf(sql, id)).length, 1)
})

t.test('send_emails: emails of a paused organisation leave the job and are held', async (t) => {
  const { organisation, ids, job } = await setUp(2)
  await sql`select ops.pause(${organisation.id}, 'a look')`
  const provider = createStandIn()
  const { task } = aWorker(sql, call, provider)
  await run(task, job)
  t.same(await sql`select from graphile_worker._private_jobs where id = ${job.id}`, [])
  await sql`select ops.resume(${organisation.id})`
  const next = await jobOf(ids)
  t.not(next.id, job.id)
  await run(task, next)
  t.equal(provider.handed.length, 2)
})

t.test(
  'send_emails: a job with an email that could not be started is retried for it',
  async (t) => {
    const { uuids, job } = await setUp(3)
    let isDamaged = true
    const failing: Call = async (name, args, options) => {
      if (isDamaged && name === 'start_emails' && JSON.stringify(args).includes(String(uuids[1]))) {
        throw new Error('the row is damaged')
      }
      return call(name, args, options)
    }
    const provider = createStandIn()
    const { task } = aWorker(sql, failing, provider)
    await t.rejects(run(task, job), { message: 'the row is damaged' })
    t.same([...provider.handed].sort(), [uuids[0], uuids[2]].sort(), 'the others were attempted')
    isDamaged = false
    await run(task, job)
    t.same([...provider.handed].sort(), [...uuids].sort())
  },
)

t.test('send_emails: emails of several jobs share the places of the worker', async (t) => {
  const jobs = [await setUp(4), await setUp(4)].map(({ job }) => job)
  let inProgress = 0
  let most = 0
  const { promise: full, resolve: onFull } = Promise.withResolvers<void>()
  const { promise: answer, resolve: respond } = Promise.withResolvers<void>()
  const provider = createStandIn()
  provider.onSend = async () => {
    inProgress += 1
    most = Math.max(most, inProgress)
    if (inProgress === 3) onFull()
    await answer
    inProgress -= 1
    return { outcome: 'sent' }
  }
  const { task } = aWorker(sql, call, provider, { places: createPlaces(3) })
  const runs = jobs.map((job) => run(task, job))
  await full
  respond()
  await Promise.all(runs)
  t.equal(most, 3)
  t.equal(provider.handed.length, 8)
})

t.test('send_emails: emails that wait for a place stay in the job at a stop', async (t) => {
  const { ids, uuids, job } = await setUp(3)
  const stopping = new AbortController()
  const provider = createStandIn()
  provider.onSend = async () => {
    stopping.abort()
    return { outcome: 'sent' }
  }
  const { task } = aWorker(sql, call, provider, { places: createPlaces(1, stopping.signal) })
  await t.rejects(run(task, job), { message: NOT_STARTED })
  t.same(provider.handed, [uuids[0]])
  t.match(await messageOf(sql, ids[1] ?? ''), { attempts: 0, attemptStartedAt: null })
  await run(aWorker(sql, call, provider).task, job)
  t.same(provider.handed, uuids)
})

t.test('send_sms_messages: each SMS of a job is sent once', async (t) => {
  const payer = await createPayer(sql, { included: 100 })
  const ids = await sendSmsBatch(base, payer, [{}, {}, {}])
  const job = await jobOf(ids)
  t.equal(job.task, 'send_sms_messages')
  const provider = createSmsStandIn()
  const { task } = anSmsWorker(sql, call, provider)
  await run(task, job)
  await run(task, job)
  t.equal(provider.handed.length, 3)
  for (const id of ids) t.match(await messageOf(sql, id), { status: 'sent', attempts: 1 })
})

/** A Call to which the database is away when a result is recorded, as often as `isAway` says. */
function awayAtFinish(isAway: () => boolean): Call {
  return async (name, args, options) => {
    if (name === 'finish_messages' && isAway()) {
      throw new Unreachable('no connection to the database became free within 5000 ms')
    }
    return call(name, args, options)
  }
}

t.test('send_sms: a result is recorded although graphile-worker ended its pool', async (t) => {
  const payer = await createPayer(sql, { included: 100 })
  const [id = ''] = await sendSmsBatch(base, payer, [{}])
  const ended = new AbortController()
  let failures = 0
  const away = awayAtFinish(() => {
    ended.abort()
    failures += 1
    return failures < 3
  })
  const provider = createSmsStandIn()
  const { task } = anSmsWorker(sql, away, provider)
  await task({ id: (await messageOf(sql, id)).id }, helpersOf('0', ended.signal))
  t.equal(failures, 3)
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1 })
})

t.test('send_sms: a result is not recorded any more when the worker has to end', async (t) => {
  const payer = await createPayer(sql, { included: 100 })
  const [id = ''] = await sendSmsBatch(base, payer, [{}])
  const ending = new AbortController()
  const away = awayAtFinish(() => {
    ending.abort()
    return true
  })
  const provider = createSmsStandIn()
  const { task } = anSmsWorker(sql, away, provider, { ending: ending.signal })
  const uuid = (await messageOf(sql, id)).id
  await t.rejects(async () => task({ id: uuid }, helpersOf('0')), { name: Unreachable.name })
})
