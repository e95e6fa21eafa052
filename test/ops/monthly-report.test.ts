import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase, rolledBack } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { readPage } from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhooks.ts'

const { headings, blocks, paragraphs } = await readPage('monthly-report')

/** The queries of the page by the ids of their sections, with the columns that the page lists. */
const queries = new Map(
  headings
    .filter(({ level }) => level === 2)
    .map(({ id }) => {
      const { text: query = '' } = blocks.find(({ section }) => section === id) ?? {}
      const columns = paragraphs.find(
        ({ section, text }) => section === id && text.startsWith('Columns: '),
      )
      return [id, { query, columns: columns?.codes ?? [] }]
    }),
)

const { url, sql } = await createDatabase()
// The start of a service creates what webhook endpoints need.
await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql, { name: 'Acme' })
const { id, liveKey, testKey } = organisation
const { id: relayed } = await createOrganisation(sql, { name: 'By a relay' })

/** Within last month in UTC, whatever day it is. */
const lastMonth = sql`(date_trunc('month', now(), 'UTC') - interval '10 days')`

// A billing period of the organisation ended within last month, and another one may have ended since.
await sql`select ops.grant_credits(${id}, 10, 'invoice 7')`
await sql`
  with made as (
    update app.organisations set created_at = ${lastMonth} - interval '1 month'
    where id = core.decode_id('org', ${id}) returning id, created_at
  )
  update app.allowances a
  set emails_used = 7, (period_start, period_end) = (select p.* from core.period_at(m.created_at, m.created_at) p)
  from made m where a.organisation_id = m.id`
await sql`
  update app.credit_ledger l set period_start = a.period_start
  from app.allowances a where a.organisation_id = l.organisation_id`
await sql`select api.close_periods()`
await sql`
  insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced,
    complained, failed, expired, rejected)
  select (${lastMonth} at time zone 'UTC')::date, core.decode_id('org', ${id}), 'email', 'marketing', v.tag, 1000, 1000,
    900, 20, 1, 0, 0, 0
  from unnest(array[null, 'news']) v (tag)`
await sql`
  insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced,
    complained, failed, expired, rejected)
  select (${lastMonth} at time zone 'UTC')::date, core.decode_id('org', ${relayed}), 'email', 'transactional', null, 100, 90,
    0, 0, 0, 10, 0, 0`
await sql`
  insert into app.suppressions (organisation_id, id, email, reason, created_at)
  select core.decode_id('org', ${id}), gen_random_uuid(), s.email, 'unsubscribe', s.at
  from (values ('new@acme.example', ${lastMonth}), ('old@acme.example', ${lastMonth} - interval '1 year')) s (email, at)`
await sql`
  insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address, subject,
    tags, recipients, created_at)
  select 'queued', core.new_id(now() - interval '10 minutes'), core.decode_id('org', ${id}), 'email', 'live',
    'transactional', 'a@acme.example', 'b@acme.example', 'Hello', '{}', 1, now() - interval '10 minutes'`
await sql`
  update app.allowances set messages_accepted = messages_accepted + 1
  where organisation_id = core.decode_id('org', ${id})`
const { id: endpoint } = await createEndpoint(sql, organisation)
await sql`update app.webhook_endpoints set failing_since = now() - interval '2 hours', last_error = 'responded 500'`
await sql`
  update app.api_keys set created_at = now() - interval '1 year',
    last_used_on = case when prefix = left(${testKey}, 16) then now()::date - 91 else now()::date end`
await sql`update app.audit set at = ${lastMonth} where action = 'grant_credits'`
await sql`select api.record_table_sizes()`
await sql`update app.table_sizes set day = day - 20, bytes = bytes - 8192 where name = 'app.audit'`

/** What the query of a section returns to a login for reports, by column. */
async function rowsOf(section: string) {
  const { query } = queries.get(section) ?? {}
  if (!query) throw new Error(`the page has no query in section ${section}`)
  const reader = connect(url, { max: 1, hasSqlNames: true })
  try {
    let rows: Record<string, unknown>[] = []
    await reader.begin('read only', async (tx) => {
      await tx`set local role postgram_report`
      rows = await tx.unsafe(query)
    })
    return rows
  } finally {
    await reader.end()
  }
}

t.test(
  'monthly report: each of the ten queries returns rows with the listed columns',
  async (t) => {
    t.equal(queries.size, 10)
    for (const [section, { query, columns }] of queries) {
      t.match(query, /^select [^;]*;$/, section)
      const [row] = await rowsOf(section)
      t.ok(row, `${section} returns a row`)
      t.same(Object.keys(row ?? {}), columns, section)
    }
  },
)

t.test(
  'monthly report: invoices cover the periods that ended last month, with granted credits',
  async (t) => {
    t.match(await rowsOf('invoices'), [
      { organisation: id, name: 'Acme', emails_used: 7, credits_granted: '10', plan_changes: null },
    ])
  },
)

t.test('monthly report: credit balances are of the current period', async (t) => {
  t.match(await rowsOf('sms-credit-balances'), [
    { organisation: relayed, credits_after: '0' },
    { organisation: id, credits_before: '10', credits_granted: '0', credits_after: '10' },
  ])
})

t.test('monthly report: rates count a message once and are null if not reported', async (t) => {
  t.match(await rowsOf('complaint-and-bounce-rates'), [
    { organisation: id, sent: '1000', complained_percent: '0.100', bounced_percent: '2.00' },
    {
      organisation: relayed,
      sent: '90',
      complained_percent: null,
      bounced_percent: null,
      failed_percent: '10.00',
    },
  ])
})

t.test('monthly report: suppressions are counted for last month and in total', async (t) => {
  t.match(await rowsOf('suppression-growth'), [
    { name: 'Acme', reason: 'unsubscribe', added_last_month: '1', total: '2' },
  ])
})

t.test('monthly report: a waiting message is listed with its reason', async (t) => {
  t.match(await rowsOf('waiting-messages'), [{ organisation: id, why: /no worker is running/ }])
})

t.test("monthly report: a failing endpoint is listed with its organisation's name", async (t) => {
  t.match(await rowsOf('failing-webhooks'), [
    { name: 'Acme', endpoint, last_error: 'responded 500' },
  ])
})

t.test('monthly report: a key is listed after 90 days without a request', async (t) => {
  t.same(
    (await rowsOf('unused-api-keys')).map(({ prefix }) => prefix),
    [testKey.slice(0, 16)],
  )
  t.not(liveKey.slice(0, 16), testKey.slice(0, 16))
})

t.test('monthly report: the audit is counted by actor and action of last month', async (t) => {
  t.match(await rowsOf('audit-summary'), [
    { action: 'grant_credits', times: '1', organisations: '1' },
  ])
})

t.test(
  'ops.retention: shows the next drop and the size that is dropped within 31 days',
  async (t) => {
    const rows = await rowsOf('data-retention-forecast')
    t.same(rows.map(({ data }) => data).sort(), [
      'bodies',
      'idempotency keys',
      'messages',
      'webhooks',
    ])
    const [next] = await sql<{ at: Date }[]>`
    select min(p.expires_at) as at from core.partitions() p where p.data = 'bodies'`
    t.same(rows.find(({ data }) => data === 'bodies')?.next_drop_at, next?.at)
    await rolledBack(sql, async (tx) => {
      const expiring = async () =>
        (
          await tx`select expiring_bytes > 0 as has_some from ops.retention where data = 'messages'`
        )[0]
      t.same(await expiring(), { hasSome: false }, 'messages are kept for 400 days')
      await tx`update app.retention set days = 1 where data = 'messages'`
      t.same(await expiring(), { hasSome: true })
    })
  },
)

t.test('ops.table_sizes: growth counts from the oldest size of the last 31 days', async (t) => {
  const rows = await rowsOf('table-growth')
  const [audit] = rows.filter(({ name }) => name === 'app.audit')
  t.match(audit, { grown: '8192 bytes' })
  t.ok(
    rows.some(({ name }) => name === 'app.messages'),
    'partitions count to their table',
  )
  t.notOk(rows.some(({ name }) => /_\d{4}/.test(String(name))))
})

t.test(
  'table sizes are recorded once a day for each table and deleted after 400 days',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`
      insert into app.table_sizes (day, name, bytes, rows)
      select (now() at time zone 'UTC')::date - d, 'app.old', 1, 1 from unnest(array[400, 401]) d`
      const count = async () =>
        (await tx`select from app.table_sizes where day > now()::date - 2`).length
      await tx`select api.record_table_sizes()`
      const tables = await count()
      t.ok(tables > 30)
      await tx`select api.record_table_sizes()`
      t.equal(await count(), tables)
      t.equal((await tx`select from app.table_sizes where name = 'app.old'`).length, 1)
    })
  },
)
