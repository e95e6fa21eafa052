create function api.accept_emails(calls jsonb, items jsonb, catalogue jsonb)
returns setof api.answer
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  perform core.lock_organisations(array(select distinct c.organisation_id from core.calls_in_turn(calls) c));
  for v_turn in 1 .. coalesce((select max(c.turn) from core.calls_in_turn(calls) c), 0) loop
    return query
    select t.n, t.status, t.code, t.fields, t.body, t.replayed
    from core.accept_emails_turn(calls, items, catalogue, v_turn) t;
  end loop;
end
$$;

comment on function api.accept_emails is
  'Accept calls of POST /v1/emails and /v1/emails/batch: single, batch and coalesced alike. calls: {n, organisation_id, mode, key, fingerprint, batch}; items: emails with their call and index; one answer per call. Refuses idempotency_conflict, org_suspended, org_paused, validation_error (templates), domain_not_verified, recipient_suppressed, plan_allowance_exceeded.';
