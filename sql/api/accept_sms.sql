-- Locks, in this order: allowances of the organisations by id, then rows that only their holder writes.
create function api.accept_sms(
  calls jsonb, items jsonb, catalogue jsonb, is_shared boolean default false, run uuid default null
)
returns setof core.call_response
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_taken jsonb;
  v_rounds integer;
  v_refused integer[] := case when run is not null then core.refused_calls(run) end;
begin
  -- The admission of the keys failed.
  if run is not null and v_refused is null then
    return;
  end if;
  select b.taken, b.rounds into v_taken, v_rounds
  from core.begin_accept(calls, is_shared, nullif(v_refused, '{}')) b;
  for v_round in 1 .. v_rounds loop
    return query select * from core.accept_sms_round(v_taken, items, catalogue, v_round);
  end loop;
end
$$;

comment on function api.accept_sms is
  'Accept calls of POST /v1/sms and /v1/sms/batch; the responses are those of api.accept_emails. Refuses idempotency_conflict, org_suspended, validation_error (scheduledAt, senderId), org_paused, insufficient_credits, rate_limited (test messages).';
