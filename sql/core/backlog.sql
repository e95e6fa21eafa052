create function core.backlog(organisation_id uuid)
returns bigint
language sql stable
as $$
  select a.messages_accepted - d.messages_dequeued
  from app.allowances a
  join app.counters d on d.organisation_id = a.organisation_id
  where a.organisation_id = backlog.organisation_id
$$;

comment on function core.backlog is
  'Returns the number of live messages of an organisation that wait for an attempt.';
