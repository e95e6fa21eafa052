// What stays fast with many messages behind it: the operator's views, reading one message, and
// sending while the oldest month is dropped.
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql } from '../../src/db/client.ts'
import type { LoadResult } from './load.ts'
import { load, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'

export type Growth = {
  messages: number
  /** The slowest views by their milliseconds, for their first 1 000 rows. */
  slowest: [view: string, ms: number][]
  /** GET /v1/emails/{id} for messages of all ages, one after the other; and with few there are. */
  retrieval: LoadResult
  retrievalOfFew: LoadResult
  /** The slowest of 200 sends a second while partitions are dropped, in milliseconds. */
  slowestSend: number
  dropped: number
}

/** Months before this one that messages are spread over. */
const MONTHS = 13

/** So few that all of them are in memory: what reading one costs here besides how many there are. */
const FEW = 10_000

const RETRIEVAL_SECONDS = 10

/** Read again after its first time, which also reads it from disk and makes its plan. */
const TIMES = 3

export async function benchGrowth(bench: Bench, messages: number): Promise<Growth> {
  const { sql } = bench
  await fill(sql, FEW)
  const retrievalOfFew = await timeRetrieval(bench)
  await fill(sql, messages)
  const slowest = await timeViews(sql)
  const retrieval = await timeRetrieval(bench)
  const api = await startApi(bench, ['--only', 'api'])
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
  await sql`update app.retention set days = 62 where data = 'messages'`
  const dropped = await dropAll(sql)
  const { slowest: slowestSend } = await sends
  await stop(api.child)
  return { messages, slowest, retrieval, retrievalOfFew, slowestSend, dropped }
}

/** Messages of the last months with a timeline, and the sums that the clock would have made of them. */
async function fill(sql: Sql, messages: number) {
  await sql`
    truncate app.messages, app.bodies, app.events, app.message_terms, app.status_changes, app.daily_volume, app.daily_latencies,
      app.daily_bounces`
  await sql`
    update app.search_progress set indexed_until = '00000000-0000-0000-0000-000000000000', seen_at = now(), seen_xid = '0'`
  await sql`
    select core.make_id_partition(parent, date_trunc('month', now(), 'UTC') - make_interval(months => m), '1 month', '_YYYY_MM')
    from generate_series(1, ${MONTHS}::integer) m, unnest(array['messages', 'events', 'message_terms']) parent`
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
    select d.day, null::uuid, c.channel::app.channel, s.stage::app.event_type, b, 100
    from (select distinct v.day from app.daily_volume v) d, unnest(array['email', 'sms']) c (channel),
      unnest(array['sent', 'delivered']) s (stage), generate_series(20, 60) b`
  await sql`
    insert into app.daily_bounces (day, organisation_id, channel, code, reason, messages)
    select v.day, v.organisation_id, v.channel, 'hard_bounce', '550 5.1.1 user unknown', v.bounced
    from app.daily_volume v where v.tag is null and v.bounced > 0`
  for (let indexed = 1; indexed > 0; ) {
    const [row] = await sql<{ count: number }[]>`select api.index_messages() as count`
    indexed = row?.count ?? 0
  }
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

/** By a process of its own, so that what it has compiled before does not tell. */
async function timeRetrieval(bench: Bench): Promise<LoadResult> {
  const rows = await bench.sql<{ id: string; domain: string }[]>`
    with moment as materialized (
      select s.first + (s.last - s.first) * random() as at
      from (select min(created_at) as first, max(created_at) as last from app.messages) s, generate_series(1, 5000)
    )
    select core.encode_id('em', m.id) as id, d.name as domain
    from moment
    cross join lateral (
      select m.id, m.organisation_id from app.messages m
      where m.id >= core.first_id_at(moment.at) and m.channel = 'email'
      order by m.id
      limit 1
    ) m
    join app.domains d on d.organisation_id = m.organisation_id`
  const { senders } = bench
  const keys = new Map(senders.emails.map(({ key, body }) => [/@([^>]+)>/.exec(body)?.[1], key]))
  const api = await startApi(bench, ['--only', 'api'])
  const result = await load({
    path: '/v1/emails',
    senders: rows.map(({ id, domain }) => ({ id, key: keys.get(domain) ?? '' })),
    connections: 1,
    seconds: RETRIEVAL_SECONDS,
    port: api.port,
  })
  await stop(api.child)
  const [status] = Object.keys(result.refused)
  if (status) throw new Error(`a message was answered with ${status}`)
  return result
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
