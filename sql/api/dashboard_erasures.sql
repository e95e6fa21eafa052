create function api.dashboard_erasures(session text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_erasures.session);
  return (
    select coalesce(jsonb_agg(to_jsonb(e) - '{id,tried_at}'::text[] order by e.person is null, e.id desc), '[]')
    from (select * from app.erasures e order by e.person is null, e.id desc limit 50) e);
end
$$;

comment on function api.dashboard_erasures is
  'Returns the requested erasures of people that wait, then the last ones, at most 50: person (null once erased), requested_by, requested_at, error (of the last try), finished_at, rows. Refuses as core.operator_of does.';
