create function api.start_sms(ids uuid[])
returns setof api.sms_to_send
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  -- By bounds the partitions that hold none of the ids are passed over, which an array alone does not do.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
begin
  -- First of all, as what follows reads more than these rows: whoever had to wait for another worker must
  -- see in all of it what that one did.
  perform from app.messages m
  where m.id = any (ids) and m.id between v_first_id and v_last_id
  order by m.id
  for no key update;

  return query
  with mine as materialized (
    select m.id, m.status, l.has_left, l.obstacle_code, l.obstacle,
      case
        -- Nobody knows whether the network has it: a second marketing message is worse than none.
        when m.class = 'marketing' and m.attempt_started_at is not null then 'provider_unavailable'
        when o.state = 'suspended' then 'org_suspended'
        when core.late_at(m.scheduled_at) < v_now then 'expired'
        when o.state = 'paused' then 'hold'
        else coalesce(l.obstacle_code, 'start')
      end as verdict
    from app.messages m
    -- Limited, so that no plan reads all that lies between the bounds.
    cross join lateral (
      select b.* from app.bodies b
      where b.message_id = m.id and b.message_id between v_first_id and v_last_id
      limit 1
    ) b
    join app.organisations o on o.id = m.organisation_id
    cross join lateral (
      select p.has_left, r.code as obstacle_code, r.reason as obstacle
      from (select m.attempts > 0 and core.may_have_left(m.id) as has_left) p
      left join lateral (
        select x.* from core.marketing_obstacle(m.organisation_id, m.to_address, b.text, v_now) x
        where m.class = 'marketing' and not p.has_left
      ) r on true
    ) l
    where m.id = any (ids) and m.status in ('queued', 'scheduled') and m.mode = 'live' and m.channel = 'sms'
  ),
  put_aside as (
    select core.defer_messages(array_agg(i.id) filter (where i.verdict = 'hold')),
      core.end_messages(array_agg((
        i.id,
        case when i.has_left then 'failed' else 'rejected' end,
        i.verdict,
        case i.verdict
          when 'provider_unavailable' then
            'The network may have it or not: the link was lost before it answered, and marketing is not sent twice.'
          when 'org_suspended' then 'The organisation is suspended.'
          when 'expired' then 'It could not be sent within 24 hours of the time that it was scheduled for.'
          else i.obstacle
        end
      )::core.ending) filter (where i.verdict not in ('hold', 'start')))
    from mine i
  ),
  released as (
    insert into app.events (message_id, type, occurred_at)
    select i.id, 'queued', v_now
    from mine i
    where i.verdict = 'start' and i.status = 'scheduled'
  ),
  started as (
    update app.messages m
    set status = 'queued', attempts = m.attempts + 1, attempt_started_at = v_now
    from mine i
    where m.id = any (ids) and m.id = i.id and i.verdict = 'start'
    returning m.*
  )
  select s.id, s.organisation_id, s.attempts::integer, v_now, s.is_sandbox, s.class, s.from_address, s.to_address,
    b.text, s.segments::integer,
    array(select p.part::text from app.sms_parts p where p.message_id = s.id order by p.part)
  from started s
  cross join lateral (
    select b.* from app.bodies b
    where b.message_id = s.id and b.message_id between v_first_id and v_last_id
    limit 1
  ) b
  -- Asked for here, as a join would not look at it when nothing was started.
  where (select count(*) from put_aside) = 1;
end
$$;

comment on function api.start_sms is
  'Begin the hand-over of those of these SMS that still wait; committed before the provider is called (promise 4). One of a paused organisation is held; one of a suspended organisation, a scheduled one that is a day late, and marketing that the rules forbid now, is rejected. Of those that may have left already, marketing whose hand-over has no known outcome fails; transactional ones start again.';
