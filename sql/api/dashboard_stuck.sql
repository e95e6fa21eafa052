create function api.dashboard_stuck(session text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Each of 500 messages searches so many jobs for its own: all of a long queue would take minutes.
  c_jobs constant bigint := 1000;
begin
  perform core.operator_of(dashboard_stuck.session);
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', s.id, 'organisation', s.organisation, 'to', s.to_address, 'attempts', s.attempts,
      'since', core.iso(coalesce(s.scheduled_at, s.created_at)), 'why', (select concat(w.reason, w.advice, '.') from core.why_message(core.find_message(s.id), c_jobs) w)) order by s.created_at), '[]')
    from (
      select m.id, m.organisation, m."to" as to_address, m.attempts, m.scheduled_at, m.created_at
      from ops.stuck_messages m
      limit 500
    ) s);
end
$$;

comment on function api.dashboard_stuck is
  'Returns the 500 oldest messages that wait longer than a minute, with the reason: [{id, organisation, to, attempts, since, why}]. Refuses as core.operator_of does.';
