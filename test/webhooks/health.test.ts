import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  addEvents,
  clearDeliveries,
  createEndpoint,
  eventsOf,
  startReceiver,
  stateOf,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const provider = createStandIn()
const { base } = await startTestService(url, {
  roles: ['api', 'worker'],
  createEmailProvider: () => provider,
})

/** An endpoint that has been failing for `hours`. */
async function aFailingEndpoint(hours: number) {
  const organisation = await createOrganisation(sql, { name: 'Acme' })
  const receiver = await startReceiver((response) => response.writeHead(500).end())
  const endpoint = await createEndpoint(sql, organisation, {
    url: receiver.url,
    types: ['email.sent'],
  })
  const age = (hours: number) => sql`
    update app.webhook_endpoints set failing_since = now() - make_interval(hours => ${hours})
    where id = core.decode_id('we', ${endpoint.id}) and failing_since is not null`
  const fail = async () => {
    await addEvents(sql, [endpoint], 1)
    await until('a failure', async () => (await stateOf(sql, endpoint)).failingSince)
  }
  const succeed = async () => {
    receiver.answer = (response) => response.end()
    await addEvents(sql, [endpoint], 1)
    await until('a success', async () => !(await stateOf(sql, endpoint)).failingSince)
    receiver.answer = (response) => response.writeHead(500).end()
  }
  await fail()
  await age(hours)
  return {
    organisation,
    receiver,
    endpoint,
    age,
    fail,
    succeed,
    state: () => stateOf(sql, endpoint),
  }
}

const checkFailing = async () => {
  const [row] = await sql<{ checked: number }[]>`select api.check_failing_endpoints() as checked`
  return row?.checked
}

/** The mail to owners about an endpoint, once all waiting mail is sent. */
async function mailAbout({ id }: { id: string }) {
  await until('all mail', async () => {
    const waiting = await sql`select from app.notices where sent_at is null`
    return waiting.length === 0
  })
  return provider.emails.filter(({ text }) => text?.includes(id))
}

t.test('failures warn the owner after a day and disable the endpoint after three', async (t) => {
  const failing = await aFailingEndpoint(23)
  const { endpoint, organisation, receiver, state } = failing
  t.equal(await checkFailing(), 0)
  t.match(await state(), { warnedAt: null, disabledAt: null })

  await failing.age(24)
  t.equal(await checkFailing(), 1)
  t.equal(await checkFailing(), 0, 'once')
  await failing.age(71)
  t.equal(await checkFailing(), 0)
  t.match(await state(), { warnedAt: Date, disabledAt: null, waiting: 1 })
  const [warning, ...more] = await mailAbout(endpoint)
  t.same(more, [])
  t.match(warning, {
    to: ['owner@example.com'],
    subject: 'A webhook endpoint has been failing for a day',
    text: new RegExp(`Acme .*${receiver.url}.*responded 500`, 's'),
  })

  await failing.age(72)
  t.equal(await checkFailing(), 1)
  t.equal(await checkFailing(), 0, 'once')
  await clearDeliveries(sql)
  t.match(await state(), { disabledAt: Date, disabledReason: null, waiting: 0 })
  const mails = await mailAbout(endpoint)
  t.match(
    mails.map(({ subject }) => subject),
    [warning?.subject, 'A webhook endpoint was disabled: it failed for three days'],
  )

  const posts = receiver.received.length
  const message = await send(base, organisation)
  const [event] = await until('the event of a message', async () => {
    const events = await eventsOf(sql, organisation, message)
    return events.length > 0 && events
  })
  await clearDeliveries(sql)
  t.match(await state(), { waiting: 0 }, 'the event is recorded but not delivered')
  t.equal(receiver.received.length, posts)

  receiver.answer = (response) => response.end()
  t.match(await sql`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true) as events`, [
    { events: '2' },
  ])
  await until('the missed events', async () => (await state()).waiting === 0)
  t.ok(receiver.received.some(({ headers }) => headers['service-event-id'] === event?.id))
  t.equal(receiver.received.length, posts + 2)
  t.match(await state(), { failingSince: null, lastError: null, warnedAt: null, disabledAt: null })
  t.equal(await checkFailing(), 0)
})

t.test('a success resets the days of failures', async (t) => {
  const failing = await aFailingEndpoint(30)
  t.equal(await checkFailing(), 1)
  await failing.succeed()
  t.match(await failing.state(), { warnedAt: null, lastError: null, disabledAt: null })
  await failing.fail()
  t.equal(await checkFailing(), 0)
  await failing.age(24)
  t.equal(await checkFailing(), 1)
  t.match(await failing.state(), { warnedAt: Date, disabledAt: null })
  t.equal((await mailAbout(failing.endpoint)).length, 2)
})

t.test('an endpoint whose warning came too late is disabled with one mail', async (t) => {
  const { endpoint, state } = await aFailingEndpoint(100)
  t.equal(await checkFailing(), 1)
  t.equal(await checkFailing(), 0)
  t.match(await state(), { disabledAt: Date })
  t.equal((await mailAbout(endpoint)).length, 1)
})

t.test('days without an attempt do not count as failures', async (t) => {
  const { endpoint, fail, state } = await aFailingEndpoint(0)
  await sql`
    update app.webhook_endpoints
    set failing_since = now() - interval '100 hours', failed_at = now() - interval '99 hours', warned_at = now()
    where id = core.decode_id('we', ${endpoint.id})`
  t.equal(await checkFailing(), 0)
  t.match(await state(), { disabledAt: null, waiting: 1 })
  const [before] = await sql<{ attempts: number }[]>`
    select count(*)::integer as attempts from app.webhook_attempts where endpoint_id = core.decode_id('we', ${endpoint.id})`
  await fail()
  await until('one more failure', async () => {
    const attempts = await sql`
      select from app.webhook_attempts where endpoint_id = core.decode_id('we', ${endpoint.id})`
    return attempts.length > (before?.attempts ?? 0)
  })
  t.equal(await checkFailing(), 1)
  await clearDeliveries(sql)
  t.match(await state(), { disabledAt: Date, waiting: 0 })
})

t.test(
  'an outcome after the endpoint was disabled or deleted is recorded and adds no delivery',
  async (t) => {
    const organisation = await createOrganisation(sql)
    for (const end of ['disable', 'delete'] as const) {
      const { promise: asked, resolve: ask } = Promise.withResolvers<() => void>()
      const receiver = await startReceiver((response) => ask(() => response.writeHead(500).end()))
      const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
      const [event] = await addEvents(sql, [endpoint], 1)
      const answer = await asked
      if (end === 'disable')
        await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
      else await sql`select ops.delete_webhook_endpoint(${endpoint.id})`
      answer()
      await until('the attempt', async () => {
        const attempts = await sql`
        select from app.webhook_attempts where event_id = core.decode_id('evt', ${event?.id ?? ''})`
        return attempts.length === 1
      })
      await clearDeliveries(sql)
      const left = await sql`
      select from app.webhook_deliveries where endpoint_id = core.decode_id('we', ${endpoint.id})`
      t.equal(left.length, 0, end)
    }
  },
)

t.test('deliveries of a disabled or deleted endpoint are deleted', async (t) => {
  const { organisation, endpoint } = await aFailingEndpoint(0)
  const uuid = '01890000-0000-7000-8000-000000000000'
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  await addEvents(sql, [endpoint], 3)
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    select ${uuid}, v.id, now() from app.webhook_events v
    where v.organisation_id = core.decode_id('org', ${organisation.id})`
  await clearDeliveries(sql)
  const left = await sql`
      select from app.webhook_deliveries
      where endpoint_id in (core.decode_id('we', ${endpoint.id}), ${uuid})`
  t.same([...left], [])
  t.match(await stateOf(sql, endpoint), { isHeld: false })
})
