create function api.begin_check(organisation_id uuid, mode text, fingerprint text, id text, key text default null)
returns api.domain_work
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_kept app.idempotency_keys;
  v_domain app.domains;
begin
  perform core.lock_organisations(array[begin_check.organisation_id]);
  v_kept := core.claim_key(begin_check.organisation_id, begin_check.mode::app.mode, begin_check.key, begin_check.fingerprint);
  if v_kept.status is not null then
    return jsonb_populate_record(null::api.domain_work, core.domain_answer(v_kept));
  end if;
  v_domain := core.find_domain(begin_check.organisation_id, begin_check.id);
  -- A check would make anew at the provider what is being removed there.
  if v_domain.change is not null and core.is_under_way(v_domain.change_since) then
    return jsonb_populate_record(null::api.domain_work, '{"verdict": "busy"}');
  end if;
  perform core.keep_answer(begin_check.organisation_id, begin_check.mode::app.mode, begin_check.key, begin_check.fingerprint, 0, '');
  return jsonb_populate_record(null::api.domain_work, core.domain_work(v_domain));
end
$$;

comment on function api.begin_check is
  'What is to be asked about a domain that an organisation wants checked (interface 4.6); verdict as in begin_domain (busy while it is being removed), finish_check and abandon_check end it. Refuses idempotency_conflict, not_found.';
