// What stays fast with many messages behind it: the operator's views, reading one message, and
// sending while the oldest month is dropped.
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql } from '../../src/db/client.ts'
import { get } from '../fixtures/http.ts'
import { load, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'

export type Growth = {
  messages: number
  /** The slowest views by their milliseconds, for their first 1 000 rows. */
  slowest: [view: string, ms: number][]
  /** Milliseconds of GET /v1/emails/{id} for messages of all ages, one after the other. */
  retrieval: { p50: number; p99: number }
  /** The slowest of 200 sends a second while partitions are dropped, in milliseconds. */
  slowestSend: number
  dropped: number
}

/** Months before this one that messages are spread over. */
const MONTHS = 13

/** Read again after its first time, which also reads it from disk and makes its plan. */
const TIMES = 3

export async function benchGrowth(bench: Bench, messages: number): Promise<Growth> {
  const { sql } = bench
  await fill(sql, messages)
  const slowest = await timeViews(sql)
  const api = await startApi(bench, ['--only', 'api'])
  const retrieval = await timeRetrieval(bench, api.port)
  const sends = load({
    path: '/v1/emails',
    senders: bench.senders.emails,
    connections: 16,
    seconds: 20,
    rate: 200,
    port: api.port,
  })
  // Only what is sent after its warm-up counts.
  await pause(5000)
  await sql`update app.retention set days = 62 where what = 'messages'`
  const dropped = await dropAll(sql)
  const { slowest: slowestSend } = await sends
  await stop(api.child)
  return { messages, slowest, retrieval, slowestSend, dropped }
}

/** Messages of the last months with a timeline, and the sums that the clock would have made of them. */
async function fill(sql: Sql, messages: number) {
  await sql`
    select core.make_id_partition(parent, date_trunc('month', now(), 'UTC') - make_interval(months => m), '1 month', '_YYYY_MM')
    from generate_series(1, ${MONTHS}::integer) m, unnest(array['messages', 'events']) parent`
  await sql`
    with organisation as (
      select array_agg(o.id) as ids, count(*) as count from app.organisations o
    )
    insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
      recipients, created_at, sent_at, delivered_at, error_code, error_message, segments, credits)
    select k.status::app.message_status,
      (lpad(to_hex((extract(epoch from k.at) * 1000)::bigint), 12, '0') || '7' || substr(k.hash, 1, 3) || '8' || substr(k.hash, 4, 15))::uuid,
      o.ids[1 + k.n % o.count], k.channel::app.channel, 'live', 'transactional', 'hello@c.example', 'someone' || k.n || '@c.example',
      case k.channel when 'email' then 'Hello' end, array['tag-' || k.n % 5], 1, k.at, k.at + interval '80 milliseconds',
      case k.status when 'delivered' then k.at + interval '3 seconds' end,
      case k.status when 'bounced' then 'hard_bounce' end, case k.status when 'bounced' then '550 5.1.1 user unknown' end,
      case k.channel when 'sms' then 1 end, case k.channel when 'sms' then 0 end
    from organisation o
    cross join lateral (
      select n, md5(n::text) as hash, case when n % 10 = 0 then 'sms' else 'email' end as channel,
        case when n % 50 = 7 then 'bounced' else 'delivered' end as status,
        now() - interval '1 hour' - (${messages}::bigint - n) * (interval '1 day' * 30.4 * ${MONTHS - 1}::integer / ${messages}::bigint) as at
      from generate_series(1, ${messages}::bigint) n
    ) k`
  await sql`
    insert into app.events (message_id, type, occurred_at, provider_event_id)
    select m.id, m.status::text::app.event_type, m.sent_at, m.id::text from app.messages m`
  await sql`
    insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced,
      complained, failed, expired, rejected)
    select (m.created_at at time zone 'UTC')::date, m.organisation_id, m.channel, m.class, t.tag, count(*), count(*),
      count(m.delivered_at), count(m.error_code), 0, 0, 0, 0
    from app.messages m
    cross join lateral (values (''), (m.tags[1])) t (tag)
    group by 1, 2, 3, 4, 5`
  await sql`
    insert into app.daily_latencies (day, organisation_id, channel, stage, bucket, messages)
    select d.day, '00000000-0000-0000-0000-000000000000', c.channel::app.channel, s.stage::app.event_type, b, 100
    from (select distinct v.day from app.daily_volume v) d, unnest(array['email', 'sms']) c (channel),
      unnest(array['sent', 'delivered']) s (stage), generate_series(20, 60) b`
  await sql`
    insert into app.daily_bounces (day, organisation_id, channel, code, reason, messages)
    select v.day, v.organisation_id, v.channel, 'hard_bounce', '550 5.1.1 user unknown', v.bounced
    from app.daily_volume v where v.tag = '' and v.bounced > 0`
  await sql`vacuum analyze`
}

async function timeViews(sql: Sql): Promise<[string, number][]> {
  const views = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c where c.relnamespace = 'ops'::regnamespace and c.relkind = 'v'`
  const times: [string, number][] = []
  for (const { name } of views) {
    let best = Number.POSITIVE_INFINITY
    for (let n = 0; n < TIMES; n += 1) {
      const started = performance.now()
      await sql.unsafe(`select * from ops.${name} limit 1000`)
      best = Math.min(best, performance.now() - started)
    }
    times.push([name, best])
  }
  return times.sort(([, a], [, b]) => b - a).slice(0, 5)
}

async function timeRetrieval({ sql, senders }: Bench, port: number) {
  const rows = await sql<{ id: string; domain: string }[]>`
    select core.encode_id('em', m.id) as id, d.name as domain
    from app.messages m tablesample system (0.1)
    join app.domains d on d.organisation_id = m.organisation_id
    where m.channel = 'email'
    order by random()
    limit 550`
  const keys = new Map(senders.emails.map(({ key, body }) => [/@([^>]+)>/.exec(body)?.[1], key]))
  const times: number[] = []
  for (const [n, { id, domain }] of rows.entries()) {
    const started = performance.now()
    const { status } = await get(`http://127.0.0.1:${port}/v1/emails/${id}`, keys.get(domain) ?? '')
    if (status !== 200) throw new Error(`${id} was answered with ${status}`)
    if (n >= 50) times.push(performance.now() - started)
  }
  times.sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.floor(times.length * share)] ?? 0
  return { p50: quantile(0.5), p99: quantile(0.99) }
}

async function dropAll(sql: Sql): Promise<number> {
  let dropped = 0
  // A table may be in use for longer than a drop waits; the clock asks again each minute.
  for (let misses = 0; misses < 100; ) {
    const [row] = await sql<{ dropped: number }[]>`select api.drop_expired() as dropped`
    if (row?.dropped) dropped += row.dropped
    else {
      misses += 1
      await pause(500)
    }
    const [left] = await sql<{ count: number }[]>`
      select count(*)::integer as count from core.partitions() p where p.expires_at <= core.now()`
    if (left?.count === 0) break
  }
  return dropped
}
