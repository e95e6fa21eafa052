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
        'id', core.message_id((s.m).channel, (s.m).id), 'organisation', core.encode_id('org', (s.m).organisation_id),
        'to', (s.m).to_address, 'attempts', (s.m).attempts,
        'since', core.iso(coalesce((s.m).scheduled_at, (s.m).created_at)),
        'why', (select concat(w.reason, w.advice, '.') from core.why_message(s.m, c_jobs) w)) order by (s.m).id), '[]')
    from (
      -- Whole rows, as why_message needs them: to find each message again by its ID would take longer.
      select x.m
      from (select k.id from core.stuck_messages() k (id) order by k.id limit 500) k
      cross join lateral (select x as m from app.messages x where x.id = k.id limit 1) x
    ) s);
end
$$;

comment on function api.dashboard_stuck is
  'Returns the 500 oldest messages that wait longer than a minute, with the reason: [{id, organisation, to, attempts, since, why}]. Refuses as core.operator_of does.';
