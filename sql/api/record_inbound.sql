create function api.record_inbound(messages jsonb)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_inbound(messages)
$$;

comment on function api.record_inbound is
  'Record what phones answer with a keyword: {provider, from, to (the sender ID that was written to), keyword stop|start, word (that was sent), received_at}. STOP opts out of the marketing of the organisation that is meant, and is confirmed once; START takes that back where there was consent. Answers how many changed something.';
