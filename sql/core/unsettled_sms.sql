create function core.unsettled_sms()
returns bigint
language sql stable
as $$
  select count(*)
  from (
    select j.message_id as id from core.message_jobs() j
    union
    select d.message_id from app.due_messages d
  ) w
  -- The limit makes the plan look up each message by its ID.
  cross join lateral (select m.* from app.messages m where m.id = w.id limit 1) m
  where m.channel = 'sms' and m.status in ('queued', 'scheduled') and m.attempt_started_at is not null
$$;

comment on function core.unsettled_sms is
  'Returns how many waiting SMS have an attempt whose outcome is not known.';
