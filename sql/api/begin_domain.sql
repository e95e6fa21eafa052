create function api.begin_domain(
  organisation_id uuid, mode text, fingerprint text, name text, mail_from_label text, key text default null,
  since timestamptz default null
)
returns api.domain_work
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := core.now();
  v_kept app.idempotency_keys;
  v_domain app.domains;
  v_body text;
  v_limit integer;
  v_is_busy boolean := false;
  v_barred_until timestamptz;
begin
  perform core.lock_organisations(array[begin_domain.organisation_id]);
  v_kept := core.claim_key(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint);
  if v_kept.key is not null then
    return jsonb_populate_record(null::api.domain_work, core.domain_answer(v_kept));
  end if;

  select d.* into v_domain from app.domains d where d.name = begin_domain.name for no key update;
  if core.is_under_way(v_domain.change_since) then
    v_is_busy := true;
  elsif v_domain.change = 'adding' then
    -- The process that reserved it is gone. Its identity at the provider is reused below.
    delete from app.domains d where d.id = v_domain.id;
    perform core.update_name_claim(begin_domain.name);
    v_domain := null;
  elsif v_domain.organisation_id = begin_domain.organisation_id then
    v_body := core.domain_object(v_domain)::text;
    perform core.store_response(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint, 200, v_body);
    return jsonb_populate_record(null::api.domain_work,
      jsonb_build_object('verdict', 'answer', 'status', 200, 'body', v_body, 'replayed', false));
  elsif core.holds_name(v_domain) then
    perform core.record_domain_request(begin_domain.name, begin_domain.organisation_id);
    return jsonb_populate_record(null::api.domain_work, '{"verdict": "held"}');
  elsif core.is_claimed_elsewhere(begin_domain.name, v_now) then
    return jsonb_populate_record(null::api.domain_work, '{"verdict": "held"}');
  end if;

  if not v_is_busy then
    select c.barred_until into v_barred_until from app.domain_claims c
    where c.name = begin_domain.name and c.organisation_id = begin_domain.organisation_id and c.barred_until > v_now;
    if found then
      perform core.refuse('already_exists', null,
        format('Your last claim to %s was not verified in time, and another organisation asked for the name. You can add it again at %s.',
          begin_domain.name, core.iso(v_barred_until)),
        ceil(extract(epoch from v_barred_until - v_now))::integer);
    end if;
    select p.domains_included into v_limit
    from app.organisations o
    join app.plans p on p.id = o.plan_id
    where o.id = begin_domain.organisation_id;
    if (select count(*) from app.domains d where d.organisation_id = begin_domain.organisation_id) >= v_limit then
      perform core.refuse('plan_limit_reached', null, format('The plan allows %s, and the organisation has that many.',
        core.counted(v_limit, 'domain')));
    end if;
  end if;
  if begin_domain.since is null then
    perform core.limit_provider_calls(begin_domain.organisation_id);
  end if;

  if v_is_busy then
    return jsonb_populate_record(null::api.domain_work, jsonb_build_object('verdict', 'busy', 'since', v_now));
  elsif v_domain.id is not null then
    -- A claim that lapsed or was released.
    perform core.record_domain_request(begin_domain.name, begin_domain.organisation_id);
    update app.domains d set change = 'removing', change_since = v_now where d.id = v_domain.id;
    return jsonb_populate_record(null::api.domain_work,
      core.domain_work(v_domain) || jsonb_build_object('verdict', 'release', 'since', v_now));
  end if;
  insert into app.domains (id, organisation_id, name, mail_from_label, change, change_since, last_checked_at, created_at)
  values (core.new_id(v_now), begin_domain.organisation_id, begin_domain.name, begin_domain.mail_from_label,
    'adding', v_now, v_now, v_now)
  on conflict on constraint domains_one_holder do nothing
  returning * into v_domain;
  if not found then
    -- Another organisation reserved it in the meantime.
    return jsonb_populate_record(null::api.domain_work, jsonb_build_object('verdict', 'busy', 'since', v_now));
  end if;
  perform core.update_name_claim(begin_domain.name);
  perform core.store_response(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint, null, null);
  return jsonb_populate_record(null::api.domain_work, core.domain_work(v_domain));
end
$$;

comment on function api.begin_domain is
  'Reserve a domain name for an organisation before the provider creates its identity. verdict: work (call the provider, then finish_domain or abandon_domain), answer (200 for a domain that the organisation already has, or a replay), held (another organisation holds it, here or in another cell), release (the claim of another organisation lapsed: remove its identity at the provider, then end_release, then call again) or busy (call again with since). Refuses idempotency_conflict, already_exists, plan_limit_reached, rate_limited.';
