create function api.record_inbound(messages jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select cardinality(array_positions(core.record_inbound(messages), 'changed'))
$$;

comment on function api.record_inbound is
  'api.record_keywords for processes of earlier versions. Returns how many messages changed something.';
