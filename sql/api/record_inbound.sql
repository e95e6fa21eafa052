create function api.record_inbound(messages jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select cardinality(array_positions(core.record_inbound(messages), 'changed'))
$$;

comment on function api.record_inbound is
  'What processes of older versions call: api.record_keywords, but it returns how many messages changed something.';
