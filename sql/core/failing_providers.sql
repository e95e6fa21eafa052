create function core.failing_providers()
returns setof app.provider_health
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select h.*
  from app.provider_health h
  where h.failing_since is not null and h.last_failed_at > core.now() - core.provider_failure_lifetime()
$$;

comment on function core.failing_providers is
  'Returns the providers that fail now. A provider whose last failure is older than core.provider_failure_lifetime() is not listed.';
