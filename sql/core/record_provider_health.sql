create function core.record_provider_health(results jsonb)
returns void
language plpgsql volatile
as $$
begin
  -- Nearly always no provider fails: then there is nothing to record, and nothing to remove.
  if not jsonb_path_exists(results, '$[*].about') and not exists (select from app.provider_health) then
    return;
  end if;
  with provider as (
    select r.provider,
      bool_or(r.outcome = 'sent' or r.about = 'message') as is_working,
      bool_or(r.about = 'connection') as is_unreachable,
      count(*) filter (where r.about <> 'message') as failures,
      min(r.text) filter (where r.about <> 'message') as problem
    from jsonb_populate_recordset(null::core.attempt_result, results) as r
    -- Callers choose the refusals of the sandbox. Without about, the provider was not asked.
    where r.provider is not null and r.provider <> 'sandbox' and (r.outcome = 'sent' or r.about is not null)
    group by r.provider
  ),
  recovered as (
    delete from app.provider_health h
    using provider p
    where h.provider = p.provider and p.is_working
  )
  insert into app.provider_health as h (provider, failing_since, last_error, first_failed_at, last_failed_at, failures)
  select p.provider, case when p.is_unreachable then core.now() end, coalesce(p.problem, 'no reason given'),
    core.now(), core.now(), p.failures
  from provider p
  where not p.is_working
  order by p.provider
  on conflict (provider) do update
  -- Failures of long ago, after which the provider was not asked again, do not count.
  set (failing_since, last_error, first_failed_at, last_failed_at, failures) = (
    select
      case
        when known.is_stale then excluded.failing_since
        when h.failing_since is not null then h.failing_since
        when excluded.failing_since is not null
          -- One refusal means little: a relay that restarts or has too many connections takes the next
          -- attempt. A single message is attempted after 5, 10, 20 and 40 s, so a provider that keeps
          -- refusing is recorded as failing some 75 s after its first refusal.
          or h.failures + excluded.failures >= 3 and core.now() >= h.first_failed_at + interval '1 minute'
        then h.first_failed_at
      end,
      excluded.last_error,
      case when known.is_stale then excluded.first_failed_at else h.first_failed_at end,
      excluded.last_failed_at,
      case when known.is_stale then excluded.failures else least(h.failures, 1000000000) + excluded.failures end
    from (select h.last_failed_at < core.now() - core.provider_failure_lifetime() as is_stale) known
  );
end
$$;

comment on function core.record_provider_health is
  'Record failures of providers (core.attempt_result). A provider fails at once when it cannot be reached, else after three refusals in a row over a minute or more, until it takes a message or refuses only that message. The sandbox never fails: callers choose its refusals.';
