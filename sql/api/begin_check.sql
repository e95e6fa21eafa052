create function api.begin_check(organisation_id uuid, mode text, fingerprint text, id text, key text default null, since timestamptz default null)
returns api.domain_work
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept app.idempotency_keys;
  v_domain app.domains;
  v_body text;
begin
  perform core.lock_organisations(array[begin_check.organisation_id]);
  v_kept := core.claim_key(begin_check.organisation_id, begin_check.mode::app.mode, begin_check.key, begin_check.fingerprint);
  if v_kept.key is not null then
    return jsonb_populate_record(null::api.domain_work, core.domain_answer(v_kept));
  end if;
  v_domain := core.find_domain(begin_check.organisation_id, begin_check.id);
  if begin_check.since is null then
    perform core.limit_provider_calls(begin_check.organisation_id);
  end if;
  -- A check would recreate the identity that is being removed at the provider.
  if core.is_under_way(v_domain.change_since) then
    return jsonb_populate_record(null::api.domain_work, jsonb_build_object('verdict', 'busy', 'since', core.now()));
  elsif core.is_under_way(v_domain.check_started_at) then
    return jsonb_populate_record(null::api.domain_work,
      jsonb_build_object('verdict', 'busy', 'since', v_domain.check_started_at));
  elsif v_domain.last_checked_at >= begin_check.since then
    -- The result of the check that this call waited for is also its own.
    v_body := core.domain_object(v_domain)::text;
    perform core.store_response(begin_check.organisation_id, begin_check.mode::app.mode, begin_check.key, begin_check.fingerprint, 200, v_body);
    return jsonb_populate_record(null::api.domain_work,
      jsonb_build_object('verdict', 'answer', 'status', 200, 'body', v_body, 'replayed', false));
  end if;
  update app.domains d set check_started_at = core.now() where d.id = v_domain.id;
  perform core.store_response(begin_check.organisation_id, begin_check.mode::app.mode, begin_check.key, begin_check.fingerprint, null, null);
  return jsonb_populate_record(null::api.domain_work, core.domain_work(v_domain));
end
$$;

comment on function api.begin_check is
  'Start a check of a domain for an API call. verdict: work (call the provider and DNS, then finish_check or abandon_check), answer (of the check that this call waited for, or a replay) or busy (the domain is being checked or removed: call again with since). Refuses idempotency_conflict, not_found, rate_limited.';
