import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { caller } from '../../src/db/call.ts'
import { createSealer, openSecret } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { secrets, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  clearDeliveries,
  createEndpoint,
  noteAttempt,
  recordEvents,
  waitingEventsAt,
} from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const seal = createSealer(caller(sql), secrets)
const open = (text: unknown) => openSecret(secrets, String(text))

type Row = {
  url: string
  eventTypes: string[]
  secret: string
  oldSecret: string | null
  oldSecretUntil: Date | null
  failingSince: Date | null
  warnedAt: Date | null
  lastError: string | null
  disabledAt: Date | null
  disabledReason: string | null
}

const rowOf = async (id: string) => {
  const [row] = await sql<Row[]>`
    select p.*, p.event_types::text[] from app.webhook_endpoints p where p.id = core.decode_id('we', ${id})`
  return row
}

const fail = (id: string) => sql`
  update app.webhook_endpoints
  set failing_since = now() - interval '2 days', warned_at = now() - interval '1 day', last_error = 'responded 500'
  where id = core.decode_id('we', ${id})`

const replay = (event: string, endpoint: string) =>
  sql`select ops.replay_event(${event}, ${endpoint})`

t.test(
  'ops.create_webhook_endpoint: only the caller and the service can read the secret',
  async (t) => {
    const types = ['sms.failed', 'email.sent']
    const endpoint = await createEndpoint(sql, organisation, { types, url: 'https://a.example/x' })
    t.match(endpoint, { id: /^we_[0-9a-z]{26}$/, secret: /^whsec_[0-9a-f]{64}$/ })
    await seal()
    const row = await rowOf(endpoint.id)
    t.match(row, {
      url: 'https://a.example/x',
      eventTypes: ['email.sent', 'sms.failed'],
      oldSecret: null,
    })
    t.equal(await open(String(row?.secret)), endpoint.secret)
    t.notMatch(JSON.stringify(row), endpoint.secret.slice(6))
  },
)

t.test(
  'ops.create_webhook_endpoint: at most 20 endpoints, also with concurrent calls',
  async (t) => {
    const crowded = await createOrganisation(sql)
    for (let n = 0; n < 17; n += 1) await createEndpoint(sql, crowded)
    const made = await Promise.allSettled([1, 2, 3, 4, 5].map(() => createEndpoint(sql, crowded)))
    const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []))
    t.same(
      refused,
      Array(2).fill('the organisation has 20 webhook endpoints, the maximum; delete one first'),
    )
    await createEndpoint(sql, organisation)
  },
)

t.test(
  'ops.rotate_webhook_secret: the new secret signs immediately, the old one for 24 hours',
  async (t) => {
    const { id, secret } = await createEndpoint(sql, organisation)
    const [rotated] = await sql<
      { secret: string }[]
    >`select ops.rotate_webhook_secret(${id}) as secret`
    t.match(rotated?.secret, /^whsec_[0-9a-f]{64}$/)
    t.not(rotated?.secret, secret)
    await seal()
    const row = await rowOf(id)
    t.equal(await open(String(row?.secret)), rotated?.secret)
    t.equal(await open(String(row?.oldSecret)), secret)
    const hours = (Number(row?.oldSecretUntil) - Date.now()) / 3_600_000
    t.ok(hours > 23.9 && hours <= 24, `${hours}`)

    await sql`select ops.rotate_webhook_secret(${id})`
    await seal()
    const again = await rowOf(id)
    t.equal(await open(String(again?.oldSecret)), rotated?.secret, 'and no third one')
  },
)

t.test('ops.set_webhook_endpoint: changes URL and types independently', async (t) => {
  const { id } = await createEndpoint(sql, organisation, { types: ['email.sent'] })
  await sql`select ops.set_webhook_endpoint(${id}, 'https://b.example/')`
  t.match(await rowOf(id), { url: 'https://b.example/', eventTypes: ['email.sent'] })
  await sql`select ops.set_webhook_endpoint(${id}, event_types => '{sms.sent,email.failed}')`
  t.match(await rowOf(id), { url: 'https://b.example/', eventTypes: ['email.failed', 'sms.sent'] })
  await sql`select ops.set_webhook_endpoint(${id}, 'https://c.example/', ${enums.webhook_event_type})`
  t.match(await rowOf(id), { url: 'https://c.example/', eventTypes: enums.webhook_event_type })
})

t.test('ops.set_webhook_endpoint: a new URL resets the failing state', async (t) => {
  const { id } = await createEndpoint(sql, organisation)
  await fail(id)
  await sql`select ops.set_webhook_endpoint(${id}, 'https://hooks.example/')`
  t.match(await rowOf(id), { failingSince: Date }, 'the same one has')
  await sql`select ops.set_webhook_endpoint(${id}, 'https://b.example/')`
  t.match(await rowOf(id), { failingSince: null, warnedAt: null, lastError: null })

  await fail(id)
  await sql`select ops.disable_webhook_endpoint(${id}, 'a test')`
  await sql`select ops.set_webhook_endpoint(${id}, 'https://c.example/')`
  t.match(
    await rowOf(id),
    { failingSince: Date, disabledAt: Date },
    'and does not enable by itself',
  )
})

t.test(
  'ops.set_webhook_endpoint: removes waiting deliveries of types no longer chosen',
  async (t) => {
    const { id } = await createEndpoint(sql, organisation)
    const [sent] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
    const [failed] = await recordEvents(sql, organisation, 'email.failed', [new Date()])
    for (const event of [sent, failed]) await replay(String(event), id)
    const [test] = await sql<
      { id: string }[]
    >`select ops.send_test_event(${id}, 'email.sent') as id`
    await sql`select ops.set_webhook_endpoint(${id}, event_types => '{email.failed}')`
    t.same(
      (await waitingEventsAt(sql, id)).map(({ event }) => event).sort(),
      [failed, test?.id].sort(),
      'but a test event is',
    )
  },
)

t.test('ops.disable_webhook_endpoint: shows the reason and no waiting deliveries', async (t) => {
  const { id } = await createEndpoint(sql, organisation)
  const other = await createEndpoint(sql, organisation)
  const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
  for (const endpoint of [id, other.id]) await replay(event, endpoint)
  await sql`select ops.disable_webhook_endpoint(${id}, 'its owner asked for it')`
  t.match(await rowOf(id), { disabledAt: Date, disabledReason: 'its owner asked for it' })
  await clearDeliveries(sql)
  t.same(await waitingEventsAt(sql, id), [])
  t.equal((await waitingEventsAt(sql, other.id)).length, 1)
})

t.test(
  'ops.delete_webhook_endpoint: removes waiting deliveries and keeps the attempts',
  async (t) => {
    const { id } = await createEndpoint(sql, organisation)
    const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
    await replay(event, id)
    await noteAttempt(sql, id, event, { error: 'responded 500' })
    await sql`select ops.delete_webhook_endpoint(${id})`
    t.equal(await rowOf(id), undefined)
    await clearDeliveries(sql)
    t.same(await waitingEventsAt(sql, id), [])
    const [row] = await sql<{ why: string }[]>`select ops.why(${event}) as why`
    t.match(row?.why, new RegExp(`^${id}: not delivered before the endpoint was deleted\\.$`, 'm'))
  },
)

t.test('ops.delete_webhook_endpoint: also with another query plan', async (t) => {
  const { id } = await createEndpoint(sql, organisation)
  const other = await createEndpoint(sql, organisation)
  const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
  for (const endpoint of [id, other.id]) await replay(event, endpoint)
  await sql`
    insert into app.webhook_endpoints (id, organisation_id, url, event_types, secret, created_at)
    select core.new_id(now()), e.organisation_id, e.url, e.event_types, e.secret, e.created_at
    from app.webhook_endpoints e, generate_series(1, 300)
    where e.id = core.decode_id('we', ${other.id})`
  await sql`vacuum analyze app.webhook_endpoints, app.webhook_deliveries`
  await sql`select ops.delete_webhook_endpoint(${id})`
  await clearDeliveries(sql)
  t.same(await waitingEventsAt(sql, id), [])
  t.equal((await waitingEventsAt(sql, other.id)).length, 1)
})

t.test('webhook endpoint: the second of two concurrent changes sees the first', async (t) => {
  const { id } = await createEndpoint(sql, await createOrganisation(sql), {
    types: ['email.sent'],
  })
  /** Runs two changes concurrently and returns the result of the second. */
  const meet = async (first: string, second: string) => {
    const { came } = await sql.begin(async (tx) => {
      await tx.unsafe(`select ops.${first}`, [id])
      const came = sql.unsafe(`select ops.${second}`, [id]).then(
        () => 'done',
        (error: Error) => error.message,
      )
      await until('the second to wait', async () => {
        const [row] = await sql`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query = ${`select ops.${second}`}`
        return row
      })
      return { came }
    })
    return came
  }
  const bounced = "set_webhook_endpoint($1, event_types => '{email.bounced}')"
  const rotated = 'rotate_webhook_secret($1)'
  t.equal(await meet(bounced, "set_webhook_endpoint($1, url => 'https://b.example/')"), 'done')
  t.equal(await meet(rotated, rotated), 'done')
  t.match(
    await meet('delete_webhook_endpoint($1)', 'delete_webhook_endpoint($1)'),
    /^there is no webhook endpoint/,
  )
  const rows = await sql<{ before: unknown; after: unknown }[]>`
    select before, after from ops.audit where target = ${id} and action <> 'create_webhook_endpoint' order by id`
  t.equal(rows.length, 5)
  const before = (index: number) => rows[index]?.before
  const after = (index: number) => rows[index]?.after
  t.same(before(1), after(0))
  t.same(before(3), after(2))
})
