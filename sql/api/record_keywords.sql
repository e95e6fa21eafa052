create function api.record_keywords(messages jsonb)
returns text[]
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.record_inbound(messages)
$$;

comment on function api.record_keywords is
  'Record replies with a keyword. STOP opts the phone out of the marketing of the organisation that it replies to, and is confirmed once. START reverts that if there was consent. Returns an outcome for each, in their order: changed, unchanged (already in that state) or unknown (no organisation found).';
