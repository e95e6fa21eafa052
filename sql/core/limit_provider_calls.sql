create function core.limit_provider_calls(organisation_id uuid)
returns void
language plpgsql volatile
as $$
declare
  v_burst constant integer := 20;
  -- Real time, even if POSTGRAM_NOW is set: the limit protects the machine.
  v_now timestamptz := clock_timestamp();
  v_allowed double precision;
begin
  insert into app.provider_calls as c (organisation_id, allowed, counted_at)
  values (limit_provider_calls.organisation_id, v_burst - 1, v_now)
  on conflict on constraint provider_calls_pkey do update
    set allowed = least(v_burst, c.allowed + greatest(0, extract(epoch from v_now - c.counted_at))) - 1, counted_at = v_now
  returning c.allowed into v_allowed;
  if v_allowed < 0 then
    -- The error rolls the count back, so refused calls do not count.
    perform core.refuse('rate_limited', null,
      'More than 60 calls per minute that add, check or remove domains for this organisation, beyond the first 20.',
      ceil(-v_allowed)::integer);
  end if;
end
$$;

comment on function core.limit_provider_calls is
  'Count a call that makes the service query the provider and DNS. Refuses rate_limited above 60 a minute for each organisation, with bursts of 20.';
