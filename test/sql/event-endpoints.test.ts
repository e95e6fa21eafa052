import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import {
  anyJson,
  createLives,
  messageOf,
  send,
  sendBatch,
  timelineOf,
} from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { bodiesOf, createEndpoint, eventsOf, inShort, waitingFor } from '../fixtures/webhooks.ts'

// Only the API runs: the test acts as the worker and the providers.
const database = await createDatabase()
const { url, sql } = database
const { base } = await startTestService(url, { roles: ['api'] })
const { call, start, finish, record } = createLives(database)

const jobsFor = async ({ id }: { id: string }) => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count from graphile_worker._private_jobs j
    where core.decode_id('we', ${id})::text in (
      select j.payload ->> 'endpoint'
      union all select json_array_elements_text(j.payload -> 'endpoints'))`
  return row?.count
}

const delivered = async (id: string) => {
  await start(id)
  await finish(id, 'sent')
  await record(id, { type: 'delivered' })
}

t.test('emit_events: an endpoint gets events of its types only', async (t) => {
  const organisation = await createOrganisation(sql)
  const one = await createEndpoint(sql, organisation, { types: ['email.delivered', 'sms.sent'] })
  const other = await createEndpoint(sql, organisation, { types: ['email.bounced'] })
  await delivered(await send(base, organisation))
  t.strictSame(inShort(await eventsOf(sql, organisation)), ['email.delivered delivered'])
  t.strictSame(await waitingFor(sql, one), ['email.delivered'])
  t.strictSame(await waitingFor(sql, other), [])
  t.strictSame([await jobsFor(one), await jobsFor(other)], [1, 0])
})

t.test('emit_events: endpoints with the same type get the same event', async (t) => {
  const organisation = await createOrganisation(sql)
  const both = [
    await createEndpoint(sql, organisation),
    await createEndpoint(sql, organisation, { types: ['email.sent'] }),
  ]
  await delivered(await send(base, organisation))
  t.equal((await eventsOf(sql, organisation)).length, 2)
  t.strictSame(await Promise.all(both.map((one) => waitingFor(sql, one))), [
    ['email.delivered', 'email.sent'],
    ['email.sent'],
  ])
})

t.test('emit_events: many changes in one transaction add one job for each endpoint', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  const ids = await sendBatch(
    base,
    organisation,
    Array.from({ length: 100 }, () => ({})),
  )
  const uuids = await Promise.all(ids.map(async (id) => (await messageOf(sql, id)).id))
  await call('start_emails', { ids: uuids })
  const results = uuids.map((id) => ({ id, provider: 'stand-in', outcome: 'sent' }))
  await call('finish_messages', { results: anyJson(results) })
  const events = await eventsOf(sql, organisation)
  t.strictSame(events.map(({ data }) => data.id).sort(), [...ids].sort())
  t.equal(new Set(events.map(({ id }) => id)).size, 100)
  t.equal((await waitingFor(sql, endpoint)).length, 100)
  t.equal(await jobsFor(endpoint), 1)
})

t.test('emit_events: no organisation gets events of another', async (t) => {
  const [own, other, silent] = [
    await createOrganisation(sql),
    await createOrganisation(sql),
    await createOrganisation(sql),
  ]
  const endpoints = [await createEndpoint(sql, own), await createEndpoint(sql, other)]
  const ids = await Promise.all([own, other, silent].map((one) => send(base, one)))
  const uuids = await Promise.all(ids.map(async (id) => (await messageOf(sql, id)).id))
  await call('start_emails', { ids: uuids })
  const results = uuids.map((id) => ({ id, provider: 'stand-in', outcome: 'sent' }))
  await call('finish_messages', { results: anyJson(results) })
  for (const [place, organisation] of [own, other].entries()) {
    const events = await eventsOf(sql, organisation)
    t.strictSame(
      events.map(({ data }) => data.id),
      [ids[place]],
    )
    const waiting = await sql<{ id: string }[]>`
      select core.encode_id('evt', d.event_id) as id from app.webhook_deliveries d
      where d.endpoint_id = core.decode_id('we', ${endpoints[place]?.id ?? ''})`
    t.strictSame(
      waiting.map(({ id }) => id),
      events.map(({ id }) => id),
    )
  }
  t.strictSame(await eventsOf(sql, silent), [])
})

t.test('emit_events: events for a disabled endpoint are recorded, not delivered', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  await delivered(await send(base, organisation))
  t.equal((await eventsOf(sql, organisation)).length, 2)
  t.strictSame(await waitingFor(sql, endpoint), [])
  t.equal(await jobsFor(endpoint), 0)
})

t.test('emit_events: an event does not change when its message does', async (t) => {
  const organisation = await createOrganisation(sql)
  await createEndpoint(sql, organisation)
  const id = await send(base, organisation)
  await start(id)
  await finish(id, 'sent')
  const before = await bodiesOf(sql, organisation)
  await record(id, { type: 'delivered' })
  await record(id, { type: 'complained' })
  const after = await bodiesOf(sql, organisation)
  t.equal(after.length, 3)
  t.strictSame(after.slice(0, 1), before)
  t.match(JSON.parse(before[0] ?? ''), { data: { status: 'sent', deliveredAt: null } })
})

/** Returns the status of an organisation's only message, its timeline, events and jobs. */
const stateOf = async (organisation: Parameters<typeof eventsOf>[1], id: string) => {
  const [counts] = await sql<{ deliveries: number; jobs: number }[]>`
    select (select count(*)::integer from app.webhook_deliveries) as deliveries,
      (select count(*)::integer from graphile_worker._private_jobs) as jobs`
  const { status, sentAt } = await messageOf(sql, id)
  const timeline = (await timelineOf(sql, id)).map(({ type }) => type)
  return {
    deliveries: counts?.deliveries ?? 0,
    jobs: counts?.jobs ?? 0,
    status,
    sentAt,
    timeline,
    events: await bodiesOf(sql, organisation),
  }
}

t.test('emit_events: a change and its events commit together or not at all', async (t) => {
  const organisation = await createOrganisation(sql)
  await createEndpoint(sql, organisation)
  const id = await send(base, organisation)
  await start(id)
  const queued = await stateOf(organisation, id)
  const finishing = () => finish(id, 'sent')
  const reporting = () => record(id, { type: 'delivered' })

  for (const table of [
    'app.webhook_events',
    'app.webhook_deliveries',
    'graphile_worker._private_jobs',
  ]) {
    await sql.unsafe(`alter table ${table} add constraint nothing_more check (false) not valid`)
    await t.rejects(finishing(), /nothing_more/, `${table} refuses rows`)
    await t.rejects(reporting(), /nothing_more/)
    await sql.unsafe(`alter table ${table} drop constraint nothing_more`)
    t.strictSame(await stateOf(organisation, id), queued)
  }

  // The last write of a result.
  await sql`alter table app.counters add constraint nothing_leaves check (messages_dequeued < 0) not valid`
  await t.rejects(finishing(), /nothing_leaves/)
  await t.rejects(reporting(), /nothing_leaves/)
  await sql`alter table app.counters drop constraint nothing_leaves`
  t.strictSame(await stateOf(organisation, id), queued)

  await finishing()
  await reporting()
  const { status, events, deliveries, jobs } = await stateOf(organisation, id)
  t.strictSame([status, events.length], ['delivered', 2])
  t.strictSame(
    [deliveries - queued.deliveries, jobs - queued.jobs],
    [2, 2],
    'every write is committed',
  )
})

t.test(
  'enable_webhook_endpoint: replays the event of a change that was not committed yet',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const endpoint = await createEndpoint(sql, organisation, { types: ['email.sent'] })
    await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
    const { id } = await messageOf(sql, await send(base, organisation))
    await sql`select api.start_emails(${[id]}::uuid[])`

    const { enabled } = await sql.begin(async (tx) => {
      const results = JSON.stringify([{ id, provider: 'stand-in', outcome: 'sent' }])
      await tx`select api.finish_messages(${results}::text::jsonb)`
      let isDone = false
      const enabled =
        sql`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true) as count`
          .then((rows) => Number(rows[0]?.count))
          .finally(() => {
            isDone = true
          })
      enabled.catch(() => undefined)
      await until('enabling to wait or to end', async () => {
        if (isDone) return true
        const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%enable_webhook_endpoint%'`
        return row
      })
      return { enabled }
    })
    t.equal(await enabled, 1)
    t.strictSame(await waitingFor(sql, endpoint), ['email.sent'])
  },
)

t.test('enable_webhook_endpoint: a change during it is delivered once', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  const { id } = await messageOf(sql, await send(base, organisation))
  await sql`select api.start_emails(${[id]}::uuid[])`

  const { finished } = await sql.begin(async (tx) => {
    await tx`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true)`
    const results = JSON.stringify([{ id, provider: 'stand-in', outcome: 'sent' }])
    let isDone = false
    const finished = sql`select api.finish_messages(${results}::text::jsonb)`.then(() => {
      isDone = true
    })
    finished.catch(() => undefined)
    await until('the change to wait or to end', async () => {
      if (isDone) return true
      const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%finish_messages%'`
      return row
    })
    return { finished }
  })
  await finished
  t.strictSame(await waitingFor(sql, endpoint), ['email.sent'])
})
