// Messages of the past with all that a service keeps of them, inserted by SQL: what the pages, the views and the
// retrieval of messages are measured on.
import type { Sql } from '../../src/db/client.ts'

export type History = {
  messages: number
  /** How many days they are spread over, up to an hour ago. */
  days: number
  /** By UUID: which part of the messages an organisation has. The parts add up to 1. */
  shares: ReadonlyMap<string, number>
}

/**
 * Replaces all messages by these, with their timelines, bodies, webhook events, suppressions and credits, the sums of
 * reports and the index of the search. Organisations with a webhook endpoint have webhook events.
 */
export async function insertHistory(sql: Sql, { messages, days, shares }: History) {
  await sql`
    truncate app.messages, app.bodies, app.events, app.message_terms, app.status_changes, app.daily_volume, app.daily_latencies,
      app.daily_bounces, app.webhook_events, app.webhook_deliveries, app.webhook_attempts, app.webhook_hours,
      app.suppressions, app.hard_bounces, app.consents, app.credit_ledger, app.due_messages`
  await makePartitions(sql, days)
  await insertMessages(sql, { messages, days, shares })
  // None of these reads what another one writes; each has a connection.
  await Promise.all([fillIndex(sql), insertWhatFollows(sql)])
  await sql`vacuum analyze`
}

async function makePartitions(sql: Sql, days: number) {
  await sql`
    select core.make_id_partition(parent, m, '1 month', '_YYYY_MM')
    from generate_series(date_trunc('month', now() - make_interval(days => ${days}), 'UTC'), now(), '1 month') m,
      unnest(array['messages', 'events', 'message_terms']) parent`
  await sql`
    select core.make_id_partition(parent, d, '1 day', '_YYYY_MM_DD')
    from generate_series(date_trunc('day', now() - interval '30 days', 'UTC'), now(), '1 day') d,
      unnest(array['bodies', 'webhook_events', 'webhook_attempts']) parent`
}

/**
 * One in ten is an SMS, one in eight has a rare status or a second recipient, and a recipient has five messages. The
 * last 200 wait for another attempt.
 */
async function insertMessages(sql: Sql, { messages, days, shares }: History) {
  let sum = 0
  const ids = [...shares.keys()]
  const ends = [...shares.values()].map((share) => {
    sum += share
    return sum
  })
  await sql`
    insert into app.messages (id, organisation_id, channel, mode, class, status, from_address, to_address, subject, tags,
      recipients, segments, credits, attempts, provider, error_code, error_message, created_at, sent_at, delivered_at)
    select
      (lpad(to_hex((extract(epoch from k.at) * 1000)::bigint), 12, '0') || '7' || substr(k.hash, 1, 3) || '8' || substr(k.hash, 4, 15))::uuid,
      (${ids}::uuid[])[1 + width_bucket((k.n * 7919 % 100003) / 100003.0::float8, (${ends}::float8[])[:${ids.length - 1}::integer])],
      k.channel::app.channel, case when k.n % 100 = 5 and k.status <> 'queued' then 'test' else 'live' end::app.mode,
      case when k.n % 4 = 1 then 'marketing' else 'transactional' end::app.class, k.status::app.message_status,
      case when k.channel = 'sms' then 'Postgram' when k.n % 4 = 1 then 'news@c.example' else 'hello@c.example' end,
      case when k.channel = 'sms' then '+27' || 600000000 + k.who
        when k.n % 20 = 3 then format('someone%s@c.example, someone%s@d.example', k.who, k.who + 1)
        else format('someone%s@c.example', k.who) end,
      case k.channel when 'email' then (array['Your receipt', 'Your code', 'Your order is on its way', 'Reset your password', 'News of the month'])[1 + k.n % 5]
        || ' ' || k.n end,
      case when k.n % 5 = 4 then '{}' when k.n % 5000 = 0 then array['rare'] else array['tag-' || k.n % 5] end,
      case when k.channel = 'email' and k.n % 20 = 3 then 2 else 1 end,
      case k.channel when 'sms' then 1 end, case k.channel when 'sms' then 1 end,
      case when k.status <> 'queued' then 1 else 0 end, case when k.status <> 'queued' then 'sandbox' end,
      case k.status when 'bounced' then 'hard_bounce' when 'failed' then 'provider_rejected' end,
      case k.status when 'bounced' then '550 5.1.1 user unknown' when 'failed' then '554 5.7.1 refused' end,
      k.at, case when k.status not in ('queued', 'failed') then k.at + interval '80 milliseconds' end,
      case when k.status in ('delivered', 'complained') then k.at + interval '3 seconds' end
    from (
      select n, md5(n::text) as hash, n * 7919 % greatest(1, ${messages}::bigint / 5) as who,
        case when n % 10 = 0 then 'sms' else 'email' end as channel,
        case when n > ${messages}::bigint - 200 then 'queued' when n % 50 = 7 then 'bounced' when n % 1000 = 9 then 'complained'
          when n % 100 = 11 then 'failed' when n % 40 = 13 then 'sent' else 'delivered' end as status,
        now() - interval '1 hour' - (${messages}::bigint - n) * (make_interval(days => ${days}) / ${messages}::bigint) as at
      from generate_series(1, ${messages}::bigint) n
    ) k`
}

/** The last 30 days have bodies and webhook events. */
async function insertWhatFollows(sql: Sql) {
  await sql`
    insert into app.due_messages (message_id, organisation_id, priority, due_at)
    select m.id, m.organisation_id, 0, now() + interval '1 hour'
    from app.messages m
    where m.id >= core.first_id_at(now() - interval '2 days') and m.status = 'queued'`
  await sql`
    update app.allowances a
    set messages_accepted = d.messages_dequeued + (
      select count(*) from app.due_messages w where w.organisation_id = a.organisation_id)
    from app.counters d
    where d.organisation_id = a.organisation_id`
  await sql`
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    select m.id, m.status::text::app.event_type, coalesce(m.delivered_at, m.created_at + interval '3 seconds'), m.id::text,
      jsonb_build_object('recipient', split_part(m.to_address, ',', 1))
    from app.messages m
    where m.status not in ('queued', 'sent') and m.mode = 'live'`
  await sql`
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, html, text)
    select m.id, m.from_address, string_to_array(m.to_address, ', '), '{}', '{}', string_to_array(m.to_address, ', '),
      case m.channel when 'email' then '<p>Hello there, this is a line of text.</p>' end, 'Hello there, this is a line of text.'
    from app.messages m
    where m.id >= core.first_id_at(now() - interval '30 days')`
  await sql`
    insert into app.webhook_events (id, organisation_id, type, message_id, body, occurred_at)
    select k.id, m.organisation_id, k.type, m.id, core.event_body(k.id, k.type, m.delivered_at, m), m.delivered_at
    from app.messages m
    cross join lateral (
      select core.new_id(m.delivered_at) as id, (m.channel || '.delivered')::app.webhook_event_type as type
    ) k
    where m.id >= core.first_id_at(now() - interval '30 days') and m.delivered_at is not null and m.mode = 'live'
      and exists (select from app.webhook_endpoints p where p.organisation_id = m.organisation_id)`
  // One of each organisation's endpoints is failing; what it missed in the last hours waits.
  await sql`
    insert into app.webhook_attempts (endpoint_id, event_id, attempt, status, error, response, duration_ms, started_at)
    select p.id, e.id, 1, case when p.failing_since is null or e.occurred_at < p.failing_since then 200 else 503 end,
      case when e.occurred_at >= p.failing_since then 'HTTP 503' end, 'ok', 80, e.occurred_at + interval '1 second'
    from app.webhook_events e
    join app.webhook_endpoints p on p.organisation_id = e.organisation_id and p.disabled_at is null`
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, attempts, due_at)
    select p.id, e.id, 1, now() + interval '1 hour'
    from app.webhook_events e
    join app.webhook_endpoints p on p.organisation_id = e.organisation_id and e.occurred_at >= p.failing_since
    where e.id >= core.first_id_at((select min(failing_since) from app.webhook_endpoints))`
  await sql`
    insert into app.webhook_hours (endpoint_id, hour, attempts, succeeded)
    select a.endpoint_id, date_trunc('hour', a.started_at, 'UTC'), count(*), count(*) filter (where a.error is null)
    from app.webhook_attempts a
    where a.event_id >= core.first_id_at(now() - interval '2 days')
    group by 1, 2`
  await sql`
    insert into app.suppressions (organisation_id, id, email, reason, message_id, created_at)
    select distinct on (m.organisation_id, k.email) m.organisation_id, core.new_id(m.created_at), k.email,
      case m.status when 'bounced' then 'hard_bounce' else 'complaint' end::app.suppression_reason, m.id, m.created_at
    from app.messages m
    cross join lateral (select split_part(m.to_address, ',', 1) as email) k
    where m.status in ('bounced', 'complained') and m.channel = 'email'`
  await sql`
    insert into app.consents (organisation_id, phone, source, consented_at, opted_out_by, opted_out_at)
    select distinct on (m.organisation_id, m.to_address) m.organisation_id, m.to_address, 'form', m.created_at,
      case when m.to_address like '%7' then 'STOP' end,
      case when m.to_address like '%7' then m.created_at + interval '1 minute' end
    from app.messages m
    where m.channel = 'sms'`
  await sql`
    insert into app.credit_ledger (organisation_id, kind, credits, balance, period_start, message_id, created_at)
    select l.organisation_id, l.kind::app.credit_kind, l.credits, sum(l.credits) over (partition by l.organisation_id order by l.created_at, l.id),
      a.period_start, l.id, l.created_at
    from (
      select o.id as organisation_id, 'grant' as kind, 10000000 as credits, null::uuid as id, now() - interval '400 days' as created_at
      from app.organisations o
      union all
      select m.organisation_id, 'sms', -m.credits, m.id, m.created_at
      from app.messages m
      where m.channel = 'sms' and m.mode = 'live'
    ) l
    join app.allowances a on a.organisation_id = l.organisation_id
    order by l.organisation_id, l.created_at, l.id`
  await sql`
    update app.allowances a
    set sms_credits = l.balance
    from app.organisations o
    cross join lateral (
      select l.balance from app.credit_ledger l where l.organisation_id = o.id order by l.id desc limit 1
    ) l
    where a.organisation_id = o.id`
  await insertSums(sql)
}

async function insertSums(sql: Sql) {
  await sql`
    insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced,
      complained, failed, expired, rejected, units)
    select (m.created_at at time zone 'UTC')::date, m.organisation_id, m.channel, m.class, t.tag, count(*), count(m.sent_at),
      count(m.delivered_at), count(*) filter (where m.status = 'bounced'), count(*) filter (where m.status = 'complained'),
      count(*) filter (where m.status = 'failed'), 0, 0, sum(m.recipients)
    from app.messages m
    cross join lateral (select null as tag union all select unnest(m.tags)) t
    where m.mode = 'live'
    group by 1, 2, 3, 4, 5`
  await sql`
    insert into app.daily_latencies (day, organisation_id, channel, stage, bucket, messages)
    select d.day, null::uuid, c.channel::app.channel, s.stage::app.event_type, b, 100
    from (select distinct v.day from app.daily_volume v) d, unnest(array['email', 'sms']) c (channel),
      unnest(array['sent', 'delivered']) s (stage), generate_series(20, 60) b`
  await sql`
    insert into app.daily_bounces (day, organisation_id, channel, code, reason, messages)
    select v.day, v.organisation_id, v.channel, 'hard_bounce', '550 5.1.1 user unknown', sum(v.bounced)
    from app.daily_volume v
    where v.tag is null and v.bounced > 0
    group by v.day, v.organisation_id, v.channel`
}

/** The index follows new messages only, so it begins from the start. */
async function fillIndex(sql: Sql) {
  await sql`
    update app.search_progress
    set indexed_until = '00000000-0000-0000-0000-000000000000', seen_at = now(), seen_xid = '0'`
  for (let indexed = 1; indexed > 0; ) {
    const [row] = await sql<{ count: number }[]>`select api.index_messages() as count`
    indexed = row?.count ?? 0
  }
}
