create function api.record_keywords(messages jsonb)
returns text[]
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_inbound(messages)
$$;

comment on function api.record_keywords is
  'Record what phones answer with a keyword: {provider, from, to (the sender ID that was written to), keyword stop|start, word (that was sent), received_at}. STOP opts out of the marketing of the organisation that is meant, and is confirmed once; START takes that back where there was consent. Returns for each, in their order: changed, unchanged (what it says is so already) or unknown (it is not known which organisation is meant).';
