import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import {
  ago,
  createEndpoint,
  makeOldPartitions,
  noteAttempt,
  putOff,
  recordEvents,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })
await makeOldPartitions(sql)

const TIME = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'

const noWorker =
  'no worker is running; start one with the command "start" or "start --only worker".'

const why = async (event: string): Promise<string> => {
  const [row] = await sql<{ why: string }[]>`select ops.why(${event}) as why`
  return row?.why ?? ''
}

/** Creates an event and one endpoint for it; `says` matches the sentence about them. */
async function aWorld() {
  const organisation = await createOrganisation(sql)
  const { id: endpoint } = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [ago(1)])
  const replay = () => sql`select ops.replay_event(${event}, ${endpoint})`
  const says = (text: string) =>
    new RegExp(`^${endpoint}: ${text.replaceAll(/[().]/g, '\\$&').replaceAll('TIME', TIME)}$`)
  return { organisation, endpoint, event, replay, says }
}

const madeLongAgo = (endpoint: string) => sql`
  update app.webhook_endpoints set created_at = now() - interval '60 days'
  where id = core.decode_id('we', ${endpoint})`

t.test('ops.why(event): a delivered event has its time, also during a replay', async (t) => {
  const { endpoint, event, replay, says } = await aWorld()
  await noteAttempt(sql, endpoint, event, { error: 'responded 500', at: ago(0.9) })
  await noteAttempt(sql, endpoint, event, { attempt: 2, at: ago(0.8) })
  t.equal(await why(event), `${endpoint}: delivered at ${await sentAt(event)} by attempt 2.`)
  await replay()
  t.match(
    await why(event),
    says(`the event was delivered at TIME, is being replayed and waits because ${noWorker}`),
  )
  await sql`select ops.disable_webhook_endpoint(${endpoint}, 'a test')`
  t.match(await why(event), says('delivered at TIME by attempt 2.'))
})

const sentAt = async (event: string) => {
  const [row] = await sql<{ at: string }[]>`
    select core.iso(started_at) as at from app.webhook_attempts
    where event_id = core.decode_id('evt', ${event}) and error is null`
  return row?.at
}

t.test(
  'ops.why(event): a waiting delivery has number, time and reason of the attempt',
  async (t) => {
    const { endpoint, event, replay, says } = await aWorld()
    await replay()
    await noteAttempt(sql, endpoint, event, { error: 'responded 500 Oh.', attempt: 2 })
    await putOff(sql, endpoint, 2)
    t.match(
      await why(event),
      says(
        'the event waits for attempt 3 at TIME because the last attempt failed: responded 500 Oh.',
      ),
    )
  },
)

t.test('ops.why(event): a due delivery waits behind a number of deliveries', async (t) => {
  const { organisation, endpoint, event, replay, says } = await aWorld()
  const before = await recordEvents(sql, organisation, 'email.sent', [ago(3), ago(2)])
  for (const id of before) await sql`select ops.replay_event(${id})`
  await replay()
  t.match(await why(event), says(`the event waits because ${noWorker}`))
  const session = connect(url, { max: 1 })
  await session`select api.record_heartbeat('a-worker', '{worker}', 'here', 1, '1.2.3', now())`
  t.match(
    await why(event),
    says('the event has been due for attempt 1 since TIME, behind 2 deliveries.'),
  )
  await sql`
    update app.webhook_endpoints set failing_since = now(), last_error = 'responded 500.'
    where id = core.decode_id('we', ${endpoint})`
  t.match(
    await why(event),
    says(
      'the event has been due for attempt 1 since TIME, behind 2 deliveries; the endpoint has failed since TIME: responded 500.',
    ),
  )
  await session`select api.deregister('a-worker')`
  await session.end()
})

t.test('ops.why(event): a stopped delivery has the last error and a working fix', async (t) => {
  const { endpoint, event, says } = await aWorld()
  await noteAttempt(sql, endpoint, event, { error: 'responded 500', at: ago(0.5) })
  t.match(await why(event), /: not delivered; delivery stopped after 1 attempt, at /)
  await noteAttempt(sql, endpoint, event, { error: 'responded 500', attempt: 6 })
  const said = await why(event)
  t.match(
    said,
    says(
      `not delivered; delivery stopped after 6 attempts, the last at TIME (responded 500); select ops.replay_event('${event}', '${endpoint}') retries it.`,
    ),
  )
  await sql.unsafe(String(/select .*?\)/.exec(said.split(';')[2] ?? '')?.[0]))
  t.match(await why(event), /the event waits because no worker/)
})

t.test('ops.why(event): a disabled endpoint has its time and reason', async (t) => {
  const { endpoint, event, says } = await aWorld()
  await sql`select ops.disable_webhook_endpoint(${endpoint}, 'its owner is gone.')`
  const since = 'not delivered; the endpoint has been disabled since TIME (its owner is gone)'
  t.match(
    await why(event),
    says(
      `${since}; after ops.enable_webhook_endpoint, select ops.replay_event('${event}', '${endpoint}') delivers it.`,
    ),
    'of what happened before it was made, enabling replays nothing',
  )
  await madeLongAgo(endpoint)
  t.match(
    await why(event),
    says(
      `${since}; select ops.enable_webhook_endpoint('${endpoint}', replay => true) delivers it.`,
    ),
  )
})

t.test('ops.why(event): an event that the endpoint did not choose is explained', async (t) => {
  const { organisation, endpoint, event, says } = await aWorld()
  const statement = `select ops.replay_event('${event}', '${endpoint}') delivers it.`
  t.match(
    await why(event),
    says(`not delivered, because the endpoint was created later; ${statement}`),
  )
  await madeLongAgo(endpoint)
  t.match(
    await why(event),
    says(
      `not delivered, because the endpoint was disabled or had not chosen email.sent; ${statement}`,
    ),
  )
  await sql`select ops.delete_webhook_endpoint(${endpoint})`
  t.equal(await why(event), `No endpoint of ${organisation.id} receives email.sent.`)
})

t.test('ops.why(event): each endpoint has a line', async (t) => {
  const { organisation, endpoint, event } = await aWorld()
  const disabled = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  const other = await createEndpoint(sql, organisation, { types: ['sms.sent'] })
  await createEndpoint(sql, organisation, { types: ['sms.sent'] })
  await noteAttempt(sql, endpoint, event)
  await sql`select ops.disable_webhook_endpoint(${disabled.id}, 'a test')`
  await sql`select ops.replay_event(${event}, ${other.id})`
  const lines = (await why(event)).split('\n')
  t.equal(lines.length, 3)
  for (const [id, what] of [
    [endpoint, 'delivered at'],
    [disabled.id, 'not delivered; the endpoint has been disabled'],
    [other.id, 'the event waits because'],
  ] as const) {
    t.equal(lines.filter((line) => line.startsWith(`${id}: ${what}`)).length, 1, what)
  }
})

t.test('ops.why(event): a test event names only its endpoint', async (t) => {
  const { organisation, endpoint } = await aWorld()
  await createEndpoint(sql, organisation, { types: ['email.sent'] })
  const [test] = await sql<
    { id: string }[]
  >`select ops.send_test_event(${endpoint}, 'email.sent') as id`
  t.match(
    await why(String(test?.id)),
    new RegExp(`^${endpoint}: the event waits because no worker[^\\n]*$`),
  )
})

t.test('ops.why(event): the fix for a test event is another test event', async (t) => {
  const { endpoint } = await aWorld()
  const [test] = await sql<
    { id: string }[]
  >`select ops.send_test_event(${endpoint}, 'sms.sent') as id`
  const event = String(test?.id)
  await noteAttempt(sql, endpoint, event, { error: 'responded 500' })
  await sql`select ops.disable_webhook_endpoint(${endpoint}, 'a test')`
  const statement = `select ops.send_test_event('${endpoint}', 'sms.sent')`
  t.ok(
    (await why(event)).endsWith(`; after ops.enable_webhook_endpoint, ${statement} delivers it.`),
  )
  await sql`select ops.enable_webhook_endpoint(${endpoint})`
  t.ok((await why(event)).endsWith(`; ${statement} retries it.`))
  t.ok(await sql.unsafe(statement))
})
