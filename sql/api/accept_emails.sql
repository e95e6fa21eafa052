create function api.accept_emails(calls jsonb, items jsonb, catalogue jsonb, is_shared boolean default false)
returns setof api.answer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sized core.sized_email[];
  v_templates core.parsed_template[];
  v_too_large integer[];
  v_taken jsonb;
  v_turns integer;
begin
  if items @? '$[*].template_id ? (@ != null)' then
    select s.sized, s.templates, s.too_large into v_sized, v_templates, v_too_large
    from core.size_emails(calls, items, is_shared) s;
  end if;
  select b.taken, b.turns into v_taken, v_turns from core.begin_accept(calls, is_shared, v_too_large) b;
  for v_turn in 1 .. v_turns loop
    return query select * from core.accept_emails_round(v_taken, items, catalogue, v_turn, v_sized, v_templates);
  end loop;
end
$$;

comment on function api.accept_emails is
  'Accept calls of POST /v1/emails and /v1/emails/batch, single and batch alike. calls: {n, organisation_id, mode, key, fingerprint, batch}; items: emails with their call and index; one answer per call. is_shared: return no row for a call that would keep those of other organisations waiting, as its organisation is locked or its templates are large; call again with it alone. Refuses idempotency_conflict, org_suspended, org_paused, validation_error (templates), domain_not_verified, recipient_suppressed, plan_allowance_exceeded, rate_limited (test messages, named bounces).';
