import t from 'tap'
import { createDatabase, restFailedJobs } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf, messageOf, send, sendBatch, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api', 'worker'] })
const organisation = await createOrganisation(sql)
await liftRate(sql, organisation)
const tryAgain = await restFailedJobs(sql)

const attemptsOf = async (id: string) => {
  const [row] = await sql<{ attempts: number }[]>`
    select attempts from app.sandbox_messages where message_id = core.decode_id('em', ${id})`
  return row?.attempts ?? 0
}

/** Resolves once a message is no longer queued and has no job. */
const settled = (id: string) =>
  until('the message to be settled', async () => {
    const message = await messageOf(sql, id)
    return message.status !== 'queued' && (await jobsOf(sql, id)).length === 0 && message
  })

t.test('a deferred message is retried automatically', async (t) => {
  const id = await send(base, organisation, { to: 'unavailable@sandbox.postgram.test' })
  const deferrals = await until('a second refusal', async () => {
    const events = (await timelineOf(sql, id)).filter(({ type }) => type === 'deferred')
    return events.length >= 2 && events.slice(0, 2)
  })
  t.match(deferrals, [
    { detail: { attempt: 1, provider: 'sandbox', code: '421 4.3.2' } },
    { detail: { attempt: 2, provider: 'sandbox', code: '421 4.3.2' } },
  ])
  const [first, second] = deferrals.map(({ occurredAt }) => Date.parse(occurredAt))
  t.ok(Number(second) - Number(first) >= 4000, 'after at least 4 s: 5 s less a fifth of jitter')
  const [next, ...others] = await until('the next job alone', async () => {
    const jobs = await jobsOf(sql, id)
    return jobs.length === 1 && !jobs[0]?.lockedBy && jobs
  })
  t.same(others, [])
  t.match(next, { lockedBy: null, attempts: 0 })
  t.match(await get(`${base}/v1/emails/${id}`, organisation.liveKey), {
    json: { status: 'queued', error: null, sentAt: null },
  })
})

t.test('a permanently refused message fails and has no job', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = await send(base, organisation, { to: 'reject@sandbox.postgram.test' })
  t.match(await settled(id), { status: 'failed', attempts: 1 })
  t.match(await get(`${base}/v1/emails/${id}`, organisation.liveKey), {
    json: {
      status: 'failed',
      sentAt: null,
      error: { code: 'provider_rejected', message: 'The sandbox rejects this.' },
      events: [{ type: 'queued' }, { type: 'failed', detail: { code: '550 5.7.1', attempt: 1 } }],
    },
  })
  t.equal(await backlogOf(sql, organisation), before)
})

t.test('a job with an invalid payload fails with its error and delays no other', async (t) => {
  const payloads = ['null', '[]', '{}', '{"id": 7}', '{"id": "em_01"}']
  await sql`
    select graphile_worker.add_job('send_email', p.payload::json, priority := -1)
    from unnest(${payloads}::text[]) as p (payload)`
  const ids = await sendBatch(
    base,
    organisation,
    Array.from({ length: 20 }, () => ({})),
  )
  for (const id of ids) t.match(await settled(id), { attempts: 1 })
  const failed = await until('the failures', async () => {
    const jobs = await sql<{ lastError: string; lockedBy: string | null; attempts: number }[]>`
      select last_error, locked_by, attempts from graphile_worker._private_jobs
      where last_error is not null`
    return jobs.length === payloads.length && jobs.every((job) => !job.lockedBy) && jobs
  })
  t.ok(failed.every(({ lastError }) => lastError.startsWith('Invalid')))
  await sql`delete from graphile_worker._private_jobs where last_error is not null`
})

t.test('jobs of deleted and sent messages complete without an attempt', async (t) => {
  const id = await send(base, organisation)
  await settled(id)
  const { id: sentId } = await messageOf(sql, id)
  const unknown = '01890000-0000-7000-8000-000000000000'
  await sql`
    select graphile_worker.add_job('send_email', json_build_object('id', i.id))
    from unnest(${[sentId, unknown]}::text[]) as i (id)`
  await until('no jobs', async () => {
    const jobs = await sql`
      select from graphile_worker._private_jobs where payload ->> 'id' in (${sentId}, ${unknown})`
    return jobs.length === 0
  })
  t.match(await messageOf(sql, id), { attempts: 1 })
  t.equal(await attemptsOf(id), 1)
})

t.test('a sent message whose result was not recorded is not sent again', async (t) => {
  await sql`revoke execute on function api.sandbox_report from postgram_service`
  await sql`revoke execute on function api.finish_messages from postgram_service`
  const id = await send(base, organisation)
  const [job] = await until('a failed job', async () => {
    const jobs = await jobsOf(sql, id)
    return jobs[0]?.lastError && jobs
  })
  t.match(job, { lastError: /permission denied/, attempts: 1 })
  t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: Date })
  await sql`grant execute on function api.finish_messages to postgram_service`
  await tryAgain()
  t.match(await settled(id), { status: 'sent', attempts: 2, attemptStartedAt: null })
  t.equal(await attemptsOf(id), 1)
  await sql`grant execute on function api.sandbox_report to postgram_service`
})

t.test('a message delivered before its result was recorded has a complete timeline', async (t) => {
  const before = await backlogOf(sql, organisation)
  await sql`revoke execute on function api.finish_messages from postgram_service`
  const id = await send(base, organisation)
  await until('delivery', async () => (await messageOf(sql, id)).status === 'delivered')
  await sql`grant execute on function api.finish_messages to postgram_service`
  await until('the failure', async () => (await jobsOf(sql, id))[0]?.lastError)
  await tryAgain()
  const { sentAt, attemptStartedAt } = await settled(id)
  t.same(sentAt, attemptStartedAt)
  t.same(
    (await timelineOf(sql, id)).map(({ type }) => type),
    ['queued', 'sent', 'delivered'],
  )
  t.equal(await attemptsOf(id), 1)
  t.equal(await backlogOf(sql, organisation), before)
})

t.test('a message whose attempt start was not recorded is not sent', async (t) => {
  await sql`revoke execute on function api.start_emails from postgram_service`
  const id = await send(base, organisation)
  await until('a failed job', async () => (await jobsOf(sql, id))[0]?.lastError)
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 0, attemptStartedAt: null })
  t.equal(await attemptsOf(id), 0)
  await sql`grant execute on function api.start_emails to postgram_service`
  await tryAgain()
  t.match(await settled(id), { attempts: 1 })
  t.equal(await attemptsOf(id), 1)
})

t.test('a message of a test key is never attempted', async (t) => {
  const { json } = await post(
    `${base}/v1/emails`,
    organisation.testKey,
    anEmail(organisation.domain),
  )
  t.match(await messageOf(sql, json.id), { status: 'sent', attempts: 0, provider: null })
  t.same(await jobsOf(sql, json.id), [])
  t.equal(await attemptsOf(json.id), 0)
})
