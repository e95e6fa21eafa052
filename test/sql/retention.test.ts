import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const atTime = (tx: Tx, now: string) => tx`select set_config('postgram.now', ${now}, true)`

/** Drops expired partitions as the clock does; returns the remaining names of a table, without those of today. */
async function dropAll(tx: Tx) {
  let dropped = 0
  for (;;) {
    const [row] = await tx<{ dropped: number }[]>`select api.drop_expired() as dropped`
    if (!row?.dropped) return dropped
    dropped += row.dropped
  }
}

const leftOf = async (tx: Tx, table: string) =>
  (
    await tx<{ name: string }[]>`
      select p.name from core.partitions() p where p.parent = ${table} and p.name like '%2031%' order by 1`
  ).map(({ name }) => name.slice(table.length + 1))

t.test('drop_expired: drops only partitions past their retention period', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const time of ['2031-01-10T00:30:00Z', '2031-02-05T00:30:00Z']) {
      await atTime(tx, time)
      await tx`select api.make_partitions()`
    }
    await tx`select ops.set_retention(data => 'messages', days => 62)`
    await atTime(tx, '2031-02-10T00:30:00Z')
    t.ok((await dropAll(tx)) > 0)
    // The day of the 10th of January ended 30 days and half an hour ago.
    for (const table of ['bodies', 'webhook_events', 'webhook_attempts']) {
      t.equal((await leftOf(tx, table))[0], '2031_01_11', table)
    }
    t.equal(
      (await leftOf(tx, 'idempotency_keys'))[0],
      '2031_02_07',
      'a request of the 8th could still be replayed until the 9th',
    )
    t.equal((await leftOf(tx, 'messages'))[0], '2031_01')
    t.equal(await dropAll(tx), 0)

    await atTime(tx, '2031-04-03T23:59:59Z')
    await dropAll(tx)
    t.equal((await leftOf(tx, 'messages'))[0], '2031_01')
    await atTime(tx, '2031-04-04T00:00:00Z')
    await dropAll(tx)
    for (const table of ['messages', 'events', 'message_terms'])
      t.equal((await leftOf(tx, table))[0], '2031_02')
  })
})

t.test('drop_expired: keeps the body of a waiting message', async (t) => {
  const { id, domain, liveKey } = await createOrganisation(sql)
  const { json: sent } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  const { json: held } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  await sql`select ops.pause(${id}, 'a test')`
  await rolledBack(sql, async (tx) => {
    await tx`
      update app.messages set status = 'sent', sent_at = created_at where id = core.decode_id('em', ${sent.id})`
    await tx`select set_config('postgram.shift', '40 days', true)`
    const bodies = () =>
      tx<{ id: string }[]>`select core.encode_id('em', b.message_id) as id from app.bodies b`
    await dropAll(tx)
    t.same(
      (await bodies()).map(({ id }) => id),
      [held.id],
    )
    await tx`
      update app.messages set status = 'failed' where id = core.decode_id('em', ${held.id})`
    t.ok((await dropAll(tx)) > 0)
    t.same([...(await bodies())], [])
    const { message } = await raisedBy(tx, (inner) => inner`select ops.retry_message(${held.id})`)
    t.match(message, /^the body of the message has been deleted/)
  })
  t.equal((await get(`${base}/v1/emails/${sent.id}`, liveKey)).status, 200)
})

t.test('drop_expired: skips a table in use after 0.1 s', async (t) => {
  const other = connect(url, { max: 1 })
  t.teardown(() => other.end())
  await sql`select api.make_partitions()`
  await sql.begin(async (tx) => {
    await tx`
      lock table app.messages, app.events, app.bodies, app.webhook_events, app.webhook_attempts, app.idempotency_keys
      in access share mode`
    await other`set postgram.shift = '500 days'`
    t.equal(await caller(other)('drop_expired', {}), 0)
  })
  t.equal(await caller(other)('drop_expired', {}), 1)
})

t.test('drop_expired: after a lock timeout no other partition is tried', async (t) => {
  const other = connect(url, { max: 1 })
  t.teardown(() => other.end())
  await sql`select api.make_partitions()`
  await other`set postgram.shift = '500 days'`
  const [oldest] = await other<{ parent: string }[]>`
    select p.parent from core.partitions() p where p.expires_at <= core.now() order by p.span_to, p.name limit 1`
  await sql.begin(async (tx) => {
    await tx`lock table ${sql(`app.${oldest?.parent}`)} in access share mode`
    t.equal(await caller(other)('drop_expired', {}), 0, 'though other tables could be locked')
  })
})

t.test('ops.retention: shows the retention periods and sizes', async (t) => {
  await sql`select api.make_partitions()`
  const rows =
    await sql`select data, days, partitions > 0 as has_some, bytes > 0 as takes_room from ops.retention`
  const settings = { hasSome: true, takesRoom: true }
  t.same(
    rows.toSorted((a, b) => a.data.localeCompare(b.data)),
    [
      { data: 'bodies', days: 30, ...settings },
      { data: 'idempotency keys', days: null, ...settings },
      { data: 'messages', days: 400, ...settings },
      { data: 'webhooks', days: 30, ...settings },
    ],
  )
})

t.test('delete_old_sms_parts: deletes parts with their messages', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.sms_parts (message_id, part, provider, network_id, phone, taken_at)
      select core.new_id(now() - a.age), 1, 'smpp', 'x', '+27820000001', now()
      from unnest(array['399 days', '401 days']::interval[]) a (age)`
    t.same(await tx`select api.delete_old_sms_parts() as forgotten`, [{ forgotten: 1 }])
    t.same(await tx`select api.delete_old_sms_parts() as forgotten`, [{ forgotten: 0 }])
  })
})

t.test('drop_expired: removes the deliveries of dropped events', async (t) => {
  await rolledBack(sql, async (tx) => {
    await atTime(tx, '2031-01-10T00:30:00Z')
    await tx`select api.make_partitions()`
    await tx`
      insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
      select gen_random_uuid(), core.new_id(a.at), now()
      from unnest(array['2031-01-09T23:00Z', '2031-01-10T00:10Z']::timestamptz[]) a (at)`
    const waiting = async () => (await tx`select from app.webhook_deliveries`).length
    await atTime(tx, '2031-02-08T23:59:59Z')
    await dropAll(tx)
    t.equal(await waiting(), 2)
    await atTime(tx, '2031-02-09T00:00:00Z')
    await dropAll(tx)
    t.equal(await waiting(), 1)
  })
})

t.test('delete_old_sums: deletes sums with their messages', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced,
        complained, failed, expired, rejected)
      select (now() at time zone 'UTC')::date - d, gen_random_uuid(), 'email', 'marketing', '', 1, 1, 1, 0, 0, 0, 0, 0
      from unnest(array[400, 401]) d`
    t.same(await tx`select api.delete_old_sums() as forgotten`, [{ forgotten: 1 }])
    t.same(await tx`select api.delete_old_sums() as forgotten`, [{ forgotten: 0 }])
  })
})

t.test('delete_old_sums: deletes the sums of webhook attempts after two days', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.webhook_hours (endpoint_id, hour, attempts, succeeded)
      select gen_random_uuid(), now() - make_interval(hours => h), 2, 1 from unnest(array[47, 49]) h`
    t.same(await tx`select api.delete_old_sums() as deleted`, [{ deleted: 1 }])
    t.same(await tx`select api.delete_old_sums() as deleted`, [{ deleted: 0 }])
  })
})
