create function api.accept_emails(calls jsonb, items jsonb, catalogue jsonb)
returns setof api.answer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_turn in 1 .. core.begin_accept(calls) loop
    return query select * from core.accept_emails_turn(calls, items, catalogue, v_turn);
  end loop;
end
$$;

comment on function api.accept_emails is
  'Accept calls of POST /v1/emails and /v1/emails/batch: single, batch and coalesced alike. calls: {n, organisation_id, mode, key, fingerprint, batch}; items: emails with their call and index; one answer per call. Refuses idempotency_conflict, org_suspended, org_paused, validation_error (templates), domain_not_verified, recipient_suppressed, plan_allowance_exceeded.';
