create function core.judge_sms_to_start(ids uuid[], first_id uuid, last_id uuid, at timestamptz)
returns core.sms_verdict[]
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return array(
    select row(
      m.id, m.status,
      case
        -- Nobody knows whether the network has it: a second marketing message is worse than none.
        when m.class = 'marketing' and m.attempt_started_at is not null then 'provider_unavailable'
        when o.state = 'suspended' then 'org_suspended'
        when core.late_at(m.scheduled_at) < at then 'expired'
        when o.state = 'paused' then 'hold'
        when m.class = 'marketing' and not l.has_left and (select core.are_lists_behind()) then 'wait'
        else coalesce(l.code, 'start')
      end,
      l.reason, l.has_left
    )::core.sms_verdict
    from app.messages m
    -- The limit keeps the plan from reading all bodies between the bounds.
    cross join lateral (
      select b.* from app.bodies b
      where b.message_id = m.id and b.message_id between first_id and last_id
      limit 1
    ) b
    join app.organisations o on o.id = m.organisation_id
    cross join lateral (
      select p.has_left, r.code, r.reason
      from (select m.attempts > 0 and core.may_have_left(m.id) as has_left) p
      left join lateral (
        select x.* from core.marketing_obstacle(m.organisation_id, m.to_address, b.text, at) x
        where m.class = 'marketing' and not p.has_left
        -- Without it, Postgres may evaluate the rules for every SMS and then compare these conditions.
        offset 0
      ) r on true
    ) l
    where m.id = any (ids) and m.id between first_id and last_id
      and m.status in ('queued', 'scheduled') and m.mode = 'live' and m.channel = 'sms');
end
$$;

comment on function core.judge_sms_to_start is
  'Decide for each of these SMS, whose ids lie between first_id and last_id and which must be locked, whether it is attempted now; leaves out those that no longer wait.';
