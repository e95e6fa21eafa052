import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  ago,
  createEndpoint,
  makeOldPartitions,
  noteAttempt,
  putOff,
  recordEvents,
  turnsOf,
  waitingEventsAt,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })
await makeOldPartitions(sql)

const types = ['email.sent', 'email.failed']
const aWorld = async () => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation, { types })
  // The endpoint is older than the events, so that it could have received them.
  await sql`
    update app.webhook_endpoints set created_at = now() - interval '60 days'
    where id = core.decode_id('we', ${endpoint.id})`
  return { organisation, endpoint: endpoint.id }
}
const anEvent = async (organisation: TestOrganisation, type = 'email.sent', at = new Date()) => {
  const [event = ''] = await recordEvents(sql, organisation, type, [at])
  return event
}
const eventsAt = async (endpoint: string) =>
  (await waitingEventsAt(sql, endpoint)).map(({ event }) => event)

/** Returns a time as text; psql has times that JavaScript has not, such as infinity. */
const asText = (time: Date | string) => (time instanceof Date ? time.toISOString() : time)
const counted = async (query: PromiseLike<{ count: string }[]>) => Number((await query)[0]?.count)
const replayOne = (event: string, endpoint: string | null = null) =>
  counted(sql`select ops.replay_event(${event}, ${endpoint}) as count`)
const replayRange = (
  endpoint: string,
  since: Date | string,
  until: Date | string,
  missed = false,
) =>
  counted(
    sql`select ops.replay_events(${endpoint}, ${asText(since)}::text::timestamptz, ${asText(until)}::text::timestamptz, ${missed}) as count`,
  )
const enable = (endpoint: string, replay = false) =>
  counted(sql`select ops.enable_webhook_endpoint(${endpoint}, ${replay}) as count`)
const disable = (endpoint: string) =>
  sql`select ops.disable_webhook_endpoint(${endpoint}, 'a test')`

t.test('ops.replay_event: delivers to all enabled endpoints that chose the type', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const second = await createEndpoint(sql, organisation, { types })
  const uninterested = await createEndpoint(sql, organisation, { types: ['sms.sent'] })
  const disabled = await createEndpoint(sql, organisation, { types })
  const others = await createEndpoint(sql, await createOrganisation(sql), { types })
  await disable(disabled.id)
  const event = await anEvent(organisation)
  await noteAttempt(sql, endpoint, event)
  t.equal(await replayOne(event), 2)
  for (const id of [endpoint, second.id]) {
    t.match(await waitingEventsAt(sql, id), [{ event, attempts: 0 }])
    t.equal(await turnsOf(sql, id), 1)
  }
  for (const { id } of [uninterested, disabled, others]) {
    t.same(await waitingEventsAt(sql, id), [])
    t.equal(await turnsOf(sql, id), 0)
  }
})

t.test('ops.replay_event: delivers to a given endpoint regardless of its types', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const uninterested = await createEndpoint(sql, organisation, { types: ['sms.sent'] })
  const event = await anEvent(organisation)
  t.equal(await replayOne(event, uninterested.id), 1)
  t.same(await eventsAt(uninterested.id), [event])
  t.same(await eventsAt(endpoint), [])
  t.equal(await turnsOf(sql, uninterested.id), 1)
  t.equal(await turnsOf(sql, endpoint), 0)
})

t.test('ops.replay_event: a waiting delivery is due now with all attempts', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const times = [ago(0.2), ago(0.1)]
  const [event = '', other = ''] = await recordEvents(sql, organisation, 'email.sent', times)
  for (const id of [event, other]) await replayOne(id)
  await putOff(sql, endpoint, 20)
  await replayOne(event)
  const waiting = await waitingEventsAt(sql, endpoint)
  t.match(waiting, [
    { event, attempts: 0 },
    { event: other, attempts: 2 },
  ])
  t.ok(Number(waiting[0]?.dueAt) <= Date.now())

  await putOff(sql, endpoint, 0)
  await replayOne(event)
  t.match(
    await waitingEventsAt(sql, endpoint),
    [{ attempts: 0 }, { attempts: 2 }],
    'also when it is due',
  )
})

t.test('ops.replay_event: does not wait for a worker that finishes the delivery', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const events = await recordEvents(sql, organisation, 'email.sent', [ago(0.2), ago(0.1)])
  for (const event of events) await replayOne(event)
  await putOff(sql, endpoint, 20)
  await sql.begin(async (tx) => {
    await tx`
      select from app.webhook_deliveries
      where endpoint_id = core.decode_id('we', ${endpoint}) and event_id = core.decode_id('evt', ${String(events[0])})
      for update`
    t.equal(await replayRange(endpoint, ago(1), 'infinity'), 2)
  })
  t.match(await waitingEventsAt(sql, endpoint), [{ attempts: 2 }, { attempts: 0 }])
})

t.test(
  "ops.replay_events: covers an endpoint's types, from since until before until",
  async (t) => {
    const { organisation, endpoint } = await aWorld()
    const second = await createEndpoint(sql, organisation, { types })
    const [since, until] = [ago(3), ago(2)]
    const next = (time: Date, ms: number) => new Date(time.getTime() + ms)
    const inside = await recordEvents(sql, organisation, 'email.sent', [since, next(until, -1)])
    const middle = await anEvent(organisation, 'email.failed', ago(2.5))
    await recordEvents(sql, organisation, 'email.sent', [next(since, -1), until, new Date()])
    await anEvent(organisation, 'email.bounced', ago(2.5))
    await anEvent(await createOrganisation(sql), 'email.sent', ago(2.5))
    t.equal(await replayRange(endpoint, since, until), 3)
    t.same(await eventsAt(endpoint), [inside[0], middle, inside[1]])
    t.equal(await turnsOf(sql, endpoint), 1)
    t.same(await eventsAt(second.id), [])
  },
)

t.test('ops.replay_events: an organisation stands for all its enabled endpoints', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const second = await createEndpoint(sql, organisation, { types: ['email.failed', 'sms.sent'] })
  const disabled = await createEndpoint(sql, organisation, { types })
  await disable(disabled.id)
  const sent = await anEvent(organisation, 'email.sent', ago(0.1))
  const failed = await anEvent(organisation, 'email.failed')
  t.equal(await replayRange(organisation.id, ago(1), 'infinity'), 3)
  t.same(await eventsAt(endpoint), [sent, failed])
  t.same(await eventsAt(second.id), [failed])
  t.same(await eventsAt(disabled.id), [])
  t.equal(await replayRange((await createOrganisation(sql)).id, ago(1), 'infinity'), 0)
})

t.test(
  'ops.replay_events: an ID is of an endpoint, even if an organisation has it as name',
  async (t) => {
    const { organisation, endpoint } = await aWorld()
    const event = await anEvent(organisation)
    const other = await aWorld()
    await anEvent(other.organisation)
    await sql`select ops.rename_organisation(${other.organisation.id}, ${endpoint})`
    t.equal(await replayRange(endpoint, ago(1), 'infinity'), 1)
    t.same(await eventsAt(endpoint), [event])
    t.same(await eventsAt(other.endpoint), [])
  },
)

t.test('ops.replay_events: only_missed skips delivered events', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const second = await createEndpoint(sql, organisation, { types })
  const times = [ago(4), ago(3), ago(2), ago(1)]
  const events = await recordEvents(sql, organisation, 'email.sent', times)
  const [arrived = '', late = '', rests = '', elsewhere = ''] = events
  await noteAttempt(sql, endpoint, arrived)
  await noteAttempt(sql, endpoint, late, { error: 'responded 500' })
  await noteAttempt(sql, endpoint, late, { attempt: 2, at: ago(0.1) })
  await noteAttempt(sql, endpoint, late, { attempt: 1, at: ago(0.05) })
  await noteAttempt(sql, endpoint, rests, { error: 'responded 500' })
  await noteAttempt(sql, second.id, elsewhere)
  t.equal(await replayRange(endpoint, ago(5), 'infinity', true), 2)
  t.same(await eventsAt(endpoint), [rests, elsewhere])
  t.equal(await replayRange(endpoint, ago(5), 'infinity'), 4)
  t.same(await eventsAt(endpoint), events)
})

t.test('ops.replay_events: refuses events older than 30 days', async (t) => {
  const { organisation, endpoint } = await aWorld()
  const minute = 1 / 24 / 60
  const [old = '', young = ''] = await recordEvents(sql, organisation, 'email.sent', [
    ago(30 + minute),
    ago(30 - minute),
  ])
  await t.rejects(replayOne(old), {
    message: /^the event occurred at .*Z; events can be replayed for 30 days$/,
  })
  t.equal(await replayRange(endpoint, '-infinity', 'infinity'), 1)
  const [row] =
    await sql`select after from ops.audit where target = ${endpoint} order by id desc limit 1`
  t.match(row?.after, { since: '-infinity', until: 'infinity' })
  t.equal(await replayRange(endpoint, '1900-01-01Z', 'infinity'), 1)
  t.same(await eventsAt(endpoint), [young])
  await disable(endpoint)
  t.equal(await enable(endpoint), 1)
})

t.test(
  'ops.enable_webhook_endpoint: returns the missed events and replays them on request',
  async (t) => {
    const { organisation, endpoint } = await aWorld()
    const times = [ago(5), ago(4), ago(3), ago(2), ago(1)]
    const [arrived = '', rested = '', unanswered = '', ...meanwhile] = await recordEvents(
      sql,
      organisation,
      'email.sent',
      times,
    )
    await noteAttempt(sql, endpoint, arrived)
    await noteAttempt(sql, endpoint, rested, { error: 'responded 500', attempt: 6 })
    await replayOne(unanswered)
    await sql`
    update app.webhook_endpoints
    set failing_since = now() - interval '3 days', warned_at = now(), last_error = 'responded 500'
    where id = core.decode_id('we', ${endpoint})`
    await disable(endpoint)
    await anEvent(organisation, 'email.bounced')
    const turns = await turnsOf(sql, endpoint)

    t.equal(await enable(endpoint), 4)
    t.same(await waitingEventsAt(sql, endpoint), [])
    t.equal(await turnsOf(sql, endpoint), turns)
    const [row] = await sql`
    select failing_since, warned_at, last_error, disabled_at, disabled_reason
    from app.webhook_endpoints where id = core.decode_id('we', ${endpoint})`
    t.same(Object.values(row ?? {}), Array(5).fill(null))

    t.equal(await enable(endpoint, true), 4, 'also a second time')
    t.same(await eventsAt(endpoint), [rested, unanswered, ...meanwhile])
    t.equal(await turnsOf(sql, endpoint), turns + 1)
  },
)

t.test(
  "ops.enable_webhook_endpoint: events before the endpoint's creation are not missed",
  async (t) => {
    const { organisation } = await aWorld()
    const before = await anEvent(organisation, 'email.sent', ago(1))
    const endpoint = await createEndpoint(sql, organisation, { types })
    await disable(endpoint.id)
    const after = await anEvent(organisation)
    t.equal(await enable(endpoint.id, true), 1)
    t.same(await eventsAt(endpoint.id), [after])
    t.equal(await replayRange(endpoint.id, ago(2), 'infinity'), 2, 'but may have it')
    t.same(await eventsAt(endpoint.id), [before, after])
  },
)

t.test('ops.enable_webhook_endpoint: an enabled endpoint keeps its failing state', async (t) => {
  const { endpoint } = await aWorld()
  await sql`
    update app.webhook_endpoints set failing_since = now(), last_error = 'responded 500'
    where id = core.decode_id('we', ${endpoint})`
  t.equal(await enable(endpoint), 0)
  const [row] = await sql`
    select failing_since, last_error from app.webhook_endpoints where id = core.decode_id('we', ${endpoint})`
  t.match(row, { failingSince: Date, lastError: 'responded 500' })
})

t.test('ops.enable_webhook_endpoint: events recorded during the call are delivered', async (t) => {
  const { organisation, endpoint } = await aWorld()
  await disable(endpoint)
  const missed = await anEvent(organisation, 'email.sent', ago(1))
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const { promise: holding, resolve: hold } = Promise.withResolvers<void>()
  // Enabling waits for the lock of the endpoint.
  const holder = sql.begin(async (tx) => {
    await tx`
      select from app.webhook_endpoints where id = core.decode_id('we', ${endpoint}) for update`
    hold()
    await held
  })
  await holding
  const enabled = enable(endpoint, true)
  await until('enabling to wait', async () => {
    const [row] = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%enable_webhook_endpoint%'`
    return row
  })
  const meanwhile = await anEvent(organisation)
  release()
  await holder
  t.equal(await enabled, 2)
  t.same(await eventsAt(endpoint), [missed, meanwhile])
})

t.test(
  'ops.enable_webhook_endpoint: a concurrent second call keeps the replays of the first',
  async (t) => {
    const { organisation, endpoint } = await aWorld()
    await disable(endpoint)
    const missed = await anEvent(organisation, 'email.sent', ago(1))
    const { promise: second, resolve: enabledTwice } = Promise.withResolvers<number>()
    await sql.begin(async (tx) => {
      await tx`select ops.enable_webhook_endpoint(${endpoint}, replay => true)`
      enable(endpoint).then(enabledTwice)
      await until('the second to wait', async () => {
        const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%enable_webhook_endpoint%'`
        return row
      })
    })
    t.equal(await second, 1)
    t.same(await eventsAt(endpoint), [missed])
    const rows = await sql`
    select from ops.audit where action = 'enable_webhook_endpoint' and target = ${endpoint}`
    t.equal(rows.length, 1, 'and leaves no row, as it changes nothing')
  },
)
