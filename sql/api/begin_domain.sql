create function api.begin_domain(
  organisation_id uuid, mode text, fingerprint text, name text, mail_from_label text, key text default null
)
returns api.domain_work
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  v_kept app.idempotency_keys;
  v_domain app.domains;
  v_body text;
  v_limit integer;
begin
  perform core.lock_organisations(array[begin_domain.organisation_id]);
  v_kept := core.claim_key(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint);
  if v_kept.status is not null then
    return jsonb_populate_record(null::api.domain_work, core.domain_answer(v_kept));
  end if;

  select d.* into v_domain from app.domains d where d.name = begin_domain.name for no key update;
  if v_domain.change is not null and core.is_under_way(v_domain.change_since) then
    return jsonb_populate_record(null::api.domain_work, '{"verdict": "busy"}');
  elsif v_domain.change = 'adding' then
    -- Whoever reserved it is gone. What was made at the provider is picked up below.
    delete from app.domains d where d.id = v_domain.id;
  elsif v_domain.organisation_id = begin_domain.organisation_id then
    v_body := core.domain_object(v_domain)::text;
    perform core.keep_answer(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint, 200, v_body);
    return jsonb_populate_record(null::api.domain_work,
      jsonb_build_object('verdict', 'answer', 'status', 200, 'body', v_body, 'replayed', false));
  elsif v_domain.id is not null then
    perform core.refuse('already_exists');
  end if;

  select p.domains_included into v_limit
  from app.organisations o
  join app.plans p on p.id = o.plan_id
  where o.id = begin_domain.organisation_id;
  if (select count(*) from app.domains d where d.organisation_id = begin_domain.organisation_id) >= v_limit then
    perform core.refuse('plan_limit_reached', null, format('The plan allows %s domains, and the organisation has them.', v_limit));
  end if;
  insert into app.domains (id, organisation_id, name, mail_from_label, change, change_since, last_checked_at, created_at)
  values (core.new_id(v_now), begin_domain.organisation_id, begin_domain.name, begin_domain.mail_from_label,
    'adding', v_now, v_now, v_now)
  on conflict on constraint domains_one_holder do nothing
  returning * into v_domain;
  if not found then
    -- Another organisation reserved it in the meantime.
    return jsonb_populate_record(null::api.domain_work, '{"verdict": "busy"}');
  end if;
  perform core.keep_answer(begin_domain.organisation_id, begin_domain.mode::app.mode, begin_domain.key, begin_domain.fingerprint, 0, '');
  return jsonb_populate_record(null::api.domain_work, core.domain_work(v_domain));
end
$$;

comment on function api.begin_domain is
  'Reserve a domain name for an organisation before the provider is asked to make its identity (interface 4.4). verdict: work (go on, then finish_domain or abandon_domain), answer (200 for one held already, or a replay), busy (someone is at it: ask again). Refuses idempotency_conflict, already_exists, plan_limit_reached.';
