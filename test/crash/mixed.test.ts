import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { backlogOf, sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** The status of a message to each sandbox address. */
const ends: Record<string, string> = {
  delivered: 'delivered',
  bounce: 'bounced',
  softbounce: 'bounced',
  complaint: 'complained',
  slow: 'delivered',
  reject: 'failed',
  unavailable: 'queued',
}
const NAMES = Object.keys(ends)
const MESSAGES = 60 * NAMES.length

const namesAndStatuses = () => sql<{ name: string; status: string; messages: number }[]>`
  select split_part(m.to_address, '+', 1) as name, m.status, count(*)::integer as messages
  from app.messages m group by 1, 2`

t.test('workers killed under mixed load: every message gets its outcome', async (t) => {
  const startWorker = () => spawnService(url, 'worker', { WORKER_CONCURRENCY: '30' })
  const victims = await Promise.all([startWorker(), startWorker()])
  const organisation = await createOrganisation(sql)
  // The complaints would pause the organisation.
  await sql`update app.organisations set complaints_since = 'infinity'`
  const emails = Array.from({ length: MESSAGES }, (_, place) => ({
    to: `${NAMES[place % NAMES.length]}+${place}@sandbox.postgram.test`,
  }))
  await sendBatch(base, organisation, emails)
  for (const [place, victim] of victims.entries()) {
    await until('hand-overs', async () => {
      const begun = await sql`select from app.messages where attempts > 0`
      return begun.length > place * 100
    })
    await victim.end('SIGKILL')
  }
  const survivor = await startWorker()
  await until('each to come to its end', async () => {
    const found = await namesAndStatuses()
    return found.length === NAMES.length && found.every(({ name, status }) => ends[name] === status)
  })
  await until('each refusal for now to be noted', async () => {
    const noted = await sql`
        select distinct e.message_id
        from app.events e
        join app.messages m on m.id = e.message_id
        where e.provider_event_id is null and e.type = 'deferred' and m.to_address like 'unavailable+%'`
    return noted.length === MESSAGES / NAMES.length
  })
  t.equal(await survivor.end('SIGTERM'), 0)

  const [plans] = await sql`
    select count(*)::integer as messages, count(*) filter (where p.plans = 1)::integer as planned
    from app.messages m
    cross join lateral (
      select (select count(*) from graphile_worker._private_jobs j where j.payload ->> 'id' = m.id::text)
        + (select count(*) from app.due_messages d where d.message_id = m.id) as plans
    ) p
    where m.status = 'queued'`
  t.same(plans, { messages: 60, planned: 60 }, 'what waits has one plan for its next attempt')
  const jobs = await sql`select from graphile_worker._private_jobs`
  const due = await sql`select from app.due_messages`
  t.equal(jobs.length + due.length, 60, 'and nothing else has one')
  t.equal(await backlogOf(sql, organisation), 60)
  const twice = await sql`select from app.sandbox_messages where attempts > 1`
  t.equal(twice.length, 0)
  const [ambiguous] = await sql`
    select count(*)::integer as messages from app.messages where attempts > 1 and status <> 'queued'`
  t.comment(`${ambiguous?.messages} hand-overs were ambiguous`)
})
