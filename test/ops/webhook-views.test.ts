import t from 'tap'
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
const organisation = await createOrganisation(sql)

// No other endpoint fails and no other delivery waits.
t.beforeEach(() => sql`delete from app.webhook_deliveries`)
t.beforeEach(() => sql`delete from app.webhook_endpoints`)

const fail = (id: string, since: Date) => sql`
  update app.webhook_endpoints set failing_since = ${since}, last_error = 'responded 500'
  where id = core.decode_id('we', ${id})`
const shown = async (view: string) => [...(await sql.unsafe(`select * from ops.${view}`))]

t.test('ops.webhook_endpoints: shows state, waiting deliveries and last success', async (t) => {
  const { id } = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  t.match(await shown('webhook_endpoints'), [
    {
      id,
      organisation: organisation.id,
      url: 'https://hooks.example/',
      state: 'enabled',
      waiting: '0',
      nextAttemptAt: null,
      lastDeliveredAt: null,
      oldSecretUntil: null,
      createdAt: Date,
    },
  ])
  const [older = '', newer = '', waiting = ''] = await recordEvents(
    sql,
    organisation,
    'email.sent',
    [ago(3), ago(2), ago(1)],
  )
  const lastDeliveredAt = ago(1.5)
  await noteAttempt(sql, id, older, { at: ago(2.9) })
  await noteAttempt(sql, id, newer, { error: 'responded 500', at: ago(1.9) })
  await noteAttempt(sql, id, newer, { attempt: 2, at: lastDeliveredAt })
  await noteAttempt(sql, id, waiting, { error: 'responded 500' })
  await sql`select ops.replay_event(${waiting}), ops.replay_event(${newer})`
  await putOff(sql, id, 2)
  await fail(id, ago(0.5))
  await sql`select ops.rotate_webhook_secret(${id})`
  const [row] = await shown('webhook_endpoints')
  t.match(row, {
    state: 'failing',
    waiting: '2',
    lastDeliveredAt,
    failingSince: Date,
    oldSecretUntil: Date,
  })
  t.ok(row?.nextAttemptAt > new Date())

  await sql`select ops.disable_webhook_endpoint(${id}, 'a test')`
  t.match(await shown('webhook_endpoints'), [
    { state: 'disabled', disabledReason: 'a test', waiting: '0', nextAttemptAt: null },
  ])
  const day = 86_400_000
  await sql`
    update app.webhook_endpoints set old_secret_until = ${new Date(Date.now() - day)}`
  t.match(await shown('webhook_endpoints'), [{ oldSecretUntil: null }])
})

t.test('no view of ops shows a webhook secret, sealed or not', async (t) => {
  const { id, secret } = await createEndpoint(sql, organisation)
  await sql`select ops.rotate_webhook_secret(${id})`
  await sql`select ops.send_test_event(${id}, 'email.sent')`
  const [row] = await sql<{ secret: string; oldSecret: string }[]>`
    select secret, old_secret from app.webhook_endpoints`
  const views = await sql<
    { name: string }[]
  >`select name from core.manual() where arguments is null`
  const all = JSON.stringify(await Promise.all(views.map(({ name }) => shown(name))))
  t.match(all, id)
  for (const hidden of [secret, row?.secret, row?.oldSecret]) {
    t.notOk(all.includes(String(hidden)))
  }
})

t.test(
  'ops.failing_endpoints: shows missed events, the time of disabling and a working hint',
  async (t) => {
    const owner = await createOrganisation(sql)
    const failing = await createEndpoint(sql, owner, { types: ['email.sent', 'sms.sent'] })
    const disabled = await createEndpoint(sql, owner, { types: ['email.failed'] })
    await createEndpoint(sql, owner)
    const since = ago(1)
    // The event of the first failed attempt occurred before that attempt failed.
    const first = new Date(since.getTime() - 10_000)
    const [, , , arrived = ''] = await recordEvents(sql, owner, 'email.sent', [
      ago(2),
      first,
      ago(0.9),
      ago(0.8),
      ago(0.7),
    ])
    await noteAttempt(sql, failing.id, arrived)
    await fail(failing.id, since)
    await sql`select ops.disable_webhook_endpoint(${disabled.id}, 'its owner is gone')`
    await recordEvents(sql, owner, 'email.failed', [ago(0.5), new Date(Date.now() + 1000)])
    const rows = await sql<{ id: string; hint: string }[]>`
    select * from ops.failing_endpoints order by created_at`
    t.match(rows, [
      {
        id: failing.id,
        organisation: owner.id,
        state: 'failing',
        failingSince: since,
        lastError: 'responded 500',
        disablesAt: new Date(since.getTime() + 3 * 86_400_000),
        missed: '3',
        hint: `select ops.send_test_event('${failing.id}', 'email.sent')`,
      },
      {
        id: disabled.id,
        state: 'disabled',
        disablesAt: null,
        disabledReason: 'its owner is gone',
        missed: '1',
        hint: `select ops.enable_webhook_endpoint('${disabled.id}', replay => true)`,
      },
    ])
    for (const { hint } of rows) t.ok(await sql.unsafe(String(/select .*\)/.exec(hint)?.[0])))
  },
)

t.test('ops.webhook_events and ops.webhook_attempts: newest first, with IDs', async (t) => {
  const other = await createOrganisation(sql)
  const { id } = await createEndpoint(sql, other)
  const [first = ''] = await recordEvents(sql, other, 'email.bounced', [ago(1)])
  const [second = ''] = await recordEvents(sql, other, 'sms.sent', [ago(0.5)])
  const [test] = await sql<{ id: string }[]>`select ops.send_test_event(${id}, 'email.sent') as id`
  t.match(await sql`select * from ops.webhook_events where organisation = ${other.id}`, [
    { id: test?.id, type: 'email.sent', message: null },
    { id: second, type: 'sms.sent', message: /^sm_/ },
    {
      id: first,
      type: 'email.bounced',
      message: /^em_/,
      occurredAt: Date,
      body: `{"id" : "${first}"`,
    },
  ])
  await noteAttempt(sql, id, first, { error: 'responded 500', at: ago(0.3) })
  await noteAttempt(sql, id, first, { attempt: 2, at: ago(0.2) })
  await noteAttempt(sql, id, second, { at: ago(0.4) })
  t.match(await sql`select * from ops.webhook_attempts where endpoint = ${id}`, [
    { event: second, attempt: 1, status: 200 },
    { event: first, attempt: 2, error: null },
    {
      event: first,
      organisation: other.id,
      attempt: 1,
      startedAt: Date,
      durationMs: 12,
      status: 500,
      error: 'responded 500',
      response: 'broken',
    },
  ])
})

t.test('ops.queue: counts waiting and scheduled deliveries', async (t) => {
  const { id } = await createEndpoint(sql, organisation, { types: ['sms.failed'] })
  const [later = '', due = ''] = await recordEvents(sql, organisation, 'sms.failed', [
    ago(1),
    ago(0.5),
  ])
  await sql`select ops.replay_event(${later})`
  await putOff(sql, id, 1)
  await sql`select ops.replay_event(${due})`
  t.match(await sql`select * from ops.queue where task = 'webhook_deliveries'`, [
    { waiting: '1', scheduled: '1', waitingSince: Date },
  ])
})

t.test(
  'ops.checks: finds endpoints that failed for an hour or were disabled for failing',
  async (t) => {
    const { id } = await createEndpoint(sql, organisation)
    const ok = async () => {
      const [row] = await sql`select ok, hint from ops.checks where name = 'webhook endpoints'`
      if (!row?.ok) t.match(row?.hint, /select\s+\*\s+from\s+ops\.failing_endpoints/)
      return row?.ok
    }
    t.equal(await ok(), true)
    await fail(id, ago(0.9 / 24))
    t.equal(await ok(), true, 'retries can still succeed')
    await fail(id, ago(1.1 / 24))
    t.equal(await ok(), false)
    await fail(id, ago(3.1))
    await sql`update app.webhook_endpoints set failed_at = ${ago(0)}`
    await sql`select api.check_failing_endpoints()`
    t.match(await shown('failing_endpoints'), [{ state: 'disabled', disabledReason: 'failing' }])
    t.equal(await ok(), false)
    await sql`select ops.enable_webhook_endpoint(${id})`
    await sql`select ops.disable_webhook_endpoint(${id}, 'its owner asked for it')`
    t.equal(await ok(), true, 'an operator disabled it on purpose')
  },
)
