create function core.note_provider_health(results jsonb)
returns void
language sql volatile
as $$
  with provider as (
    select r.provider, bool_or(r.outcome in ('sent', 'failed')) as answers,
      min(r.text) filter (where r.outcome in ('deferred', 'ambiguous')) as problem
    from jsonb_to_recordset(results) as r (provider text, outcome text, text text)
    -- The sandbox refuses because a caller asked for that by the recipient's address.
    where r.provider is not null and r.provider <> 'sandbox'
    group by r.provider
  ),
  recovered as (
    delete from app.provider_health h
    using provider p
    where h.provider = p.provider and p.answers
  )
  insert into app.provider_health (provider, failing_since, last_error)
  select p.provider, core.now(), coalesce(p.problem, 'no reason given')
  from provider p
  where not p.answers
  order by p.provider
  on conflict (provider) do update set last_error = excluded.last_error
$$;

comment on function core.note_provider_health is
  'Record since when a provider takes nothing, or that it takes messages again; never of the sandbox, whose refusals callers choose.';
