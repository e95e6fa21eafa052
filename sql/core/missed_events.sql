create function core.missed_events(endpoint app.webhook_endpoints, at_most bigint)
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- To plan for all partitions takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
  select count(*)
  from (
    select from app.webhook_events e
    where e.organisation_id = endpoint.organisation_id and e.type = any (endpoint.event_types) and e.message_id is not null
      -- The event of the first failed attempt occurred before that attempt failed.
      and e.id >= core.first_id_at(
        greatest(core.now() - interval '30 days', least(endpoint.failing_since - interval '1 minute', endpoint.disabled_at)))
      -- Looked up for each event: a join would read all attempts at the endpoint.
      and (
        select true from app.webhook_attempts a
        where a.endpoint_id = endpoint.id and a.event_id = e.id and a.error is null
        limit 1) is null
    limit at_most
  ) e
$$;

comment on function core.missed_events is
  'Returns how many events of its types a failing or disabled endpoint has missed since then, counted up to at_most.';
