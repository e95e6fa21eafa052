create function core.end_person_messages(ids uuid[])
returns integer
language plpgsql volatile
as $$
declare
  v_waiting core.ending[];
begin
  if exists (
    -- A running attempt, which its worker has yet to settle. If the worker died, the job is released within seconds.
    select from app.messages m
    join graphile_worker._private_jobs j on j.locked_at is not null and strpos(j.payload::text, m.id::text) > 0
    where m.id = any (ids) and m.status = 'queued' and m.attempt_started_at is not null
  ) then
    raise exception 'an attempt to send a message to them is running; try again in a minute'
      using hint = 'select id, status, "to" from ops.messages where status = ''queued'' limit 20';
  end if;
  select array_agg((
      m.id,
      case when l.has_left then 'failed' else 'rejected' end,
      case when l.has_left then 'provider_unavailable' when m.channel = 'sms' then 'opted_out' else 'recipient_suppressed' end,
      case
        when l.has_left then 'It may have been sent or not: a recipient''s data was erased before that was known.'
        else 'A recipient''s data was erased before it was sent.'
      end)::core.ending)
    into v_waiting
  from app.messages m
  cross join lateral (
    select case m.channel when 'sms' then m.attempts > 0 and core.may_have_left(m.id)
      else m.attempt_started_at is not null end as has_left
  ) l
  where m.id = any (ids) and m.status in ('queued', 'scheduled');
  delete from app.due_messages d where d.message_id in (select w.message_id from unnest(v_waiting) w);
  return core.end_messages(v_waiting);
end
$$;

comment on function core.end_person_messages is
  'End those of these messages to an erased person that still wait: rejected and refunded, or failed if an earlier attempt has an unknown outcome. The caller has locked them. Raises an error while an attempt is running.';
