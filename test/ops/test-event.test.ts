import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { messageFields } from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'
import {
  createEndpoint,
  turnsOf,
  type WebhookEvent,
  waitingEventsAt,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)

const sendTest = async (endpoint: string, type: string) => {
  const [row] = await sql<{ id: string }[]>`select ops.send_test_event(${endpoint}, ${type}) as id`
  return row?.id ?? ''
}

const eventOf = async (id: string): Promise<WebhookEvent> => {
  const [row] = await sql<{ body: string }[]>`
    select body from app.webhook_events where id = core.decode_id('evt', ${id})`
  return JSON.parse(String(row?.body))
}

const bounce = { code: 'hard_bounce', message: String }
const shown: Record<string, object> = {
  'email.sent': { status: 'sent', sentAt: String, deliveredAt: null, error: null },
  'email.delivered': { status: 'delivered', sentAt: String, deliveredAt: String, error: null },
  'email.bounced': { status: 'bounced', to: 'bounce@sandbox.postgram.test', error: bounce },
  'email.complained': { status: 'complained', class: 'marketing', error: null },
  'email.failed': { status: 'failed', sentAt: null, error: { code: 'provider_rejected' } },
  'sms.sent': { status: 'sent', segments: 1, credits: 1, scheduledAt: null },
  'sms.delivered': { status: 'delivered', deliveredAt: String },
  'sms.failed': { status: 'failed', error: { code: 'network_rejected' } },
  'sms.opted_out': { status: 'delivered', class: 'marketing' },
}

for (const type of enums.webhook_event_type) {
  t.test(`ops.send_test_event: a test event ${type} has the shape of a real one`, async (t) => {
    const endpoint = await createEndpoint(sql, await createOrganisation(sql), {
      types: ['sms.sent'],
    })
    const id = await sendTest(endpoint.id, type)
    const { data, ...envelope } = await eventOf(id)
    t.match(envelope, { id: /^evt_[0-9a-z]{26}$/, type, occurredAt: /^\d{4}-.*Z$/ })
    t.equal(envelope.id, id)
    t.match(data, shown[type] ?? {})
    const channel = type.split('.')[0]
    t.match(data, {
      id: channel === 'email' ? /^em_[0-9a-z]{26}$/ : /^sm_[0-9a-z]{26}$/,
      channel,
      to: channel === 'email' ? /@sandbox\.postgram\.test$/ : '+447700900000',
      tags: ['test'],
      createdAt: /Z$/,
    })
    t.ok(data.createdAt < envelope.occurredAt)
    t.match(await waitingEventsAt(sql, endpoint.id), [{ event: id, attempts: 0 }])
    t.equal(await turnsOf(sql, endpoint.id), 1)
  })
}

t.test('ops.send_test_event: the message has the keys of a real message', async (t) => {
  const endpoint = await createEndpoint(sql, organisation)
  for (const [type, channel] of [
    ['email.sent', 'email'],
    ['sms.sent', 'sms'],
  ] as const) {
    const { data } = await eventOf(await sendTest(endpoint.id, type))
    t.same(Object.keys(data), await messageFields(channel), 'the fields of src/docs/api.md')
    t.same(await sql`select from app.messages`, [], 'and its id is of no message')
  }
})

t.test(
  'ops.send_test_event: is delivered to its endpoint only and cannot be replayed',
  async (t) => {
    const endpoint = await createEndpoint(sql, organisation)
    const other = await createEndpoint(sql, organisation)
    const id = await sendTest(endpoint.id, 'email.sent')
    t.same(await waitingEventsAt(sql, other.id), [])
    for (const to of [endpoint.id, null]) {
      await t.rejects(sql`select ops.replay_event(${id}, ${to})`, {
        message:
          'the event is a test event and cannot be replayed; ops.send_test_event sends a new one',
      })
    }
    const [row] = await sql`
    select ops.replay_events(${organisation.id}, '-infinity', 'infinity') as count`
    t.same(row, { count: '0' })
    await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
    const [enabled] =
      await sql`select ops.enable_webhook_endpoint(${endpoint.id}, replay => true) as count`
    t.same(enabled, { count: '0' }, 'and nobody missed it')
  },
)

t.test('ops.send_test_event: refuses a disabled endpoint with the fix', async (t) => {
  const { id } = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${id}, 'a test')`
  await t.rejects(sendTest(id, 'email.sent'), {
    message: `the endpoint ${id} is disabled; enable it with select ops.enable_webhook_endpoint('${id}')`,
  })
})
