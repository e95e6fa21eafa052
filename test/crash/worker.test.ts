import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { endWaiting, fiveHundred, holdSandbox } from '../fixtures/load.ts'
import { backlogOf, messageOf, sendBatch, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

/** A database of its own with an API. */
async function setUp() {
  const database = await createDatabase()
  return { ...database, ...(await startTestService(database.url, { roles: ['api'] })) }
}

const { url, sql, base } = await setUp()
const messages = fiveHundred(url, sql, base)

t.test('worker killed while another runs: its messages are delayed by seconds', async (t) => {
  const other = await messages.startWorker()
  const victim = await messages.startWorker()
  // Stopped until the victim has most of the jobs; its lock stays, so it is not removed.
  other.child.kill('SIGSTOP')
  const [organisation, killedAt] = await sql.begin(async (tx) => {
    await holdSandbox(tx)
    const organisation = await messages.queue('delivered')
    const inHand = async () => (await messages.countsOf(organisation)).inHand
    await until('most to be in hand', async () => (await inHand()) > messages.MESSAGES / 2)
    await victim.end('SIGKILL')
    t.ok((await inHand()) > messages.MESSAGES / 2)
    await endWaiting(tx)
    return [organisation, performance.now()] as const
  })
  other.child.kill('SIGCONT')

  await messages.all(organisation, 'sent')
  const seconds = (performance.now() - killedAt) / 1000
  t.comment(`all sent ${seconds.toFixed(1)} s after the kill`)
  await messages.checkNothingLost(t, organisation)
  t.equal(await other.end('SIGTERM'), 0)
})

t.test(
  'worker killed between an attempt and its record: the provider is asked, the message is not sent again',
  async (t) => {
    const victim = await messages.startWorker()
    // The provider accepts everything and reports nothing; no response of it can be recorded.
    await sql`revoke execute on function api.finish_messages, api.sandbox_report from postgram_service`
    const organisation = await messages.queue('delivered')
    await messages.all(organisation, 'taken')
    await victim.end('SIGKILL')
    t.match(await messages.countsOf(organisation), { sent: 0, inHand: messages.MESSAGES })

    await sql`grant execute on function api.finish_messages to postgram_service`
    const next = await messages.startWorker()
    const counts = await messages.all(organisation, 'sent')
    t.match(counts, { ambiguous: messages.MESSAGES, doubled: 0 })
    await sql`grant execute on function api.sandbox_report to postgram_service`
    await messages.checkNothingLost(t, organisation)
    t.equal(await next.end('SIGTERM'), 0)
  },
)

t.test(
  'worker killed in a job of several messages: a message that was deferred has one later attempt',
  async (t) => {
    const { url, sql, base } = await setUp()
    const organisation = await createOrganisation(sql)
    const [deferred, held] = await sendBatch(base, organisation, [
      { to: 'unavailable@sandbox.postgram.test' },
      { to: 'delivered@sandbox.postgram.test' },
    ])
    const uuidOf = async (id = '') => (await messageOf(sql, id)).id
    const jobsNow = () => sql<{ id: string; payload: unknown; isLocked: boolean }[]>`
      select id, payload::jsonb as payload, locked_at is not null as is_locked
      from graphile_worker._private_jobs`
    const [shared] = await jobsNow()
    t.same(shared?.payload, [await uuidOf(deferred), await uuidOf(held)])
    await sql.begin(async (tx) => {
      await holdSandbox(tx)
      const victim = await spawnService(url, 'worker')
      const typesOf = async () => (await timelineOf(sql, deferred ?? '')).map(({ type }) => type)
      await until('the deferral', async () => (await typesOf()).includes('deferred'))
      await until('the other attempt', async () => (await messageOf(sql, held ?? '')).attempts)
      await victim.end('SIGKILL')
      await endWaiting(tx)
    })
    const left = (await jobsNow()).find(({ id }) => id === shared?.id)
    t.same(left, { ...shared, payload: [await uuidOf(held)], isLocked: true })

    // The next attempt would come in between.
    await sql`update graphile_worker._private_jobs set run_at = now() + interval '1 hour' where id <> ${shared?.id ?? 0}`
    const next = await spawnService(url, 'worker')
    await until('the other', async () => (await messageOf(sql, held ?? '')).status === 'delivered')
    await until('the end of its job', async () =>
      (await jobsNow()).every(({ id }) => id !== shared?.id),
    )
    t.match(await messageOf(sql, deferred ?? ''), { status: 'queued', attempts: 1 })
    const plans = await sql`
      select message_id from core.message_jobs() union all select message_id from app.due_messages`
    t.same([...plans], [{ messageId: await uuidOf(deferred) }])
    t.equal(await next.end('SIGTERM'), 0)
  },
)

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

t.test('workers killed under mixed load: every message gets its outcome', async (t) => {
  const { url, sql, base } = await setUp()
  const startWorker = () => spawnService(url, 'worker', { WORKER_CONCURRENCY: '30' })
  const victims = await Promise.all([startWorker(), startWorker()])
  const organisation = await createOrganisation(sql)
  // The complaints would pause the organisation.
  await sql`update app.organisations set complaints_since = 'infinity'`
  const names = Object.keys(ends)
  const emails = Array.from({ length: 60 * names.length }, (_, place) => ({
    to: `${names[place % names.length]}+${place}@sandbox.postgram.test`,
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
    const found = await sql<{ name: string; status: string }[]>`
      select distinct split_part(m.to_address, '+', 1) as name, m.status from app.messages m`
    return found.length === names.length && found.every(({ name, status }) => ends[name] === status)
  })
  await until('each refusal for now to be noted', async () => {
    const noted = await sql`
        select distinct e.message_id
        from app.events e
        join app.messages m on m.id = e.message_id
        where e.provider_event_id is null and e.type = 'deferred' and m.to_address like 'unavailable+%'`
    return noted.length === 60
  })
  t.equal(await survivor.end('SIGTERM'), 0)

  const [plans] = await sql`
    select count(*)::integer as messages, count(*) filter (where p.plans = 1)::integer as planned
    from app.messages m
    cross join lateral (
      select (select count(*) from core.message_jobs() j where j.message_id = m.id)
        + (select count(*) from app.due_messages d where d.message_id = m.id) as plans
    ) p
    where m.status = 'queued'`
  t.same(plans, { messages: 60, planned: 60 }, 'what waits has one plan for its next attempt')
  const jobs = await sql`select from core.message_jobs()`
  const due = await sql`select from app.due_messages`
  t.equal(jobs.length + due.length, 60, 'and nothing else has one')
  t.equal(await backlogOf(sql, organisation), 60)
  const twice = await sql`select from ${takenBySandbox(sql)} s where attempts > 1`
  t.equal(twice.length, 0)
  const [ambiguous] = await sql`
    select count(*)::integer as messages from app.messages where attempts > 1 and status <> 'queued'`
  t.comment(`${ambiguous?.messages} hand-overs were ambiguous`)
})

const MARKETING = 20
const RECIPIENTS = 50

/** Not among the first ten copies, which start at the same time. */
const HELD_COPY = 25

class Rollback extends Error {}

t.test(
  'worker killed between copies of marketing messages: no copy is lost or sent twice',
  async (t) => {
    const { url, sql, base } = await setUp()
    const organisation = await createOrganisation(sql)
    const countsOf = async () => {
      const [counts] = await sql<Record<'taken' | 'doubled' | 'sent' | 'delivered', number>[]>`
        select
          (select count(*)::integer from ${takenBySandbox(sql)} s) as taken,
          (select count(*)::integer from ${takenBySandbox(sql)} s where attempts > 1) as doubled,
          (select count(*)::integer from app.messages where sent_at is not null) as sent,
          (select count(*)::integer from app.messages where status = 'delivered') as delivered`
      if (!counts) throw new Error('no counts')
      return counts
    }
    const to = Array.from(
      { length: RECIPIENTS },
      (_, place) => `delivered+${place}@sandbox.postgram.test`,
    )
    const emails = Array.from({ length: MARKETING }, () => ({ class: 'marketing', to }))
    await sendBatch(base, organisation, emails)
    await sql.unsafe(`
      create function public.hold_copy() returns trigger language plpgsql as $$
      begin
        if ${HELD_COPY} = any (new.copies) then perform pg_advisory_xact_lock(${HELD_COPY}); end if;
        return new;
      end $$;
      create trigger hold_copy before insert on app.sandbox_batches
      for each row execute function public.hold_copy()`)
    await sql
      .begin(async (tx) => {
        // The sandbox holds one copy of each message, so the worker waits for its outcome: some copies are
        // accepted, one is not, and others have not started.
        await tx`select pg_advisory_xact_lock(${HELD_COPY})`
        const victim = await spawnService(url, 'worker')
        await until('some copies', async () => (await countsOf()).taken >= 10)
        await victim.end('SIGKILL')
        const { taken, sent } = await countsOf()
        t.comment(`${taken} copies of ${MARKETING * RECIPIENTS} were taken`)
        t.equal(sent, 0)
        await endWaiting(tx)
        throw new Rollback()
      })
      .catch((error) => {
        if (!(error instanceof Rollback)) throw error
      })

    await spawnService(url, 'worker')
    await until('all to be delivered', async () => (await countsOf()).delivered === MARKETING)
    t.match(await countsOf(), { taken: MARKETING * RECIPIENTS, doubled: 0, sent: MARKETING })
    t.equal(await backlogOf(sql, organisation), 0)
  },
)
