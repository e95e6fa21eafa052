-- Locks, in this order: allowances of the organisations by id, then rows that only their holder writes.
create function api.accept_emails(
  calls jsonb, items jsonb, catalogue jsonb, is_shared boolean default false, run uuid default null
)
returns setof core.call_response
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sized core.sized_email[];
  v_templates core.parsed_template[];
  v_too_large integer[];
  v_taken jsonb;
  v_rounds integer;
  v_refused integer[] := case when run is not null then core.refused_calls(run) end;
begin
  -- The admission of the keys failed.
  if run is not null and v_refused is null then
    return;
  end if;
  if items @? '$[*].template_id ? (@ != null)' then
    select s.sized, s.templates, s.too_large into v_sized, v_templates, v_too_large
    from core.size_emails(calls, items, is_shared) s;
  end if;
  select b.taken, b.rounds into v_taken, v_rounds
  from core.begin_accept(calls, is_shared, v_too_large || nullif(v_refused, '{}')) b;
  for v_round in 1 .. v_rounds loop
    return query select * from core.accept_emails_round(v_taken, items, catalogue, v_round, v_sized, v_templates);
  end loop;
end
$$;

comment on function api.accept_emails is
  'Accept calls of POST /v1/emails and /v1/emails/batch. Returns one response for each call. is_shared: returns none for a call that would delay those of other organisations, because its organisation is locked or its templates are large; the caller repeats it alone. run: leaves out the calls that api.admit_calls refused for this run just before, on the same connection; all calls if it failed. Refuses idempotency_conflict, org_suspended, org_paused, validation_error (templates), domain_not_verified, recipient_suppressed, plan_allowance_exceeded, rate_limited (test messages, named bounces).';
