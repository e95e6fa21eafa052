create function api.record_callbacks(callbacks jsonb)
returns text[]
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.outcomes from core.record_callbacks(callbacks) r
$$;

comment on function api.record_callbacks is
  'api.receive_callbacks for processes of earlier versions. Returns the outcomes.';
