create function api.begin_removal(organisation_id uuid, id text, since timestamptz default null)
returns api.domain_work
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains;
begin
  perform core.lock_organisations(array[begin_removal.organisation_id]);
  v_domain := core.find_domain(begin_removal.organisation_id, begin_removal.id);
  if begin_removal.since is null then
    perform core.limit_provider_calls(begin_removal.organisation_id);
  end if;
  if core.is_under_way(v_domain.change_since) then
    return jsonb_populate_record(null::api.domain_work, jsonb_build_object('verdict', 'busy', 'since', core.now()));
  end if;
  update app.domains d
  set change = 'removing', change_since = core.now()
  where d.id = v_domain.id;
  return jsonb_populate_record(null::api.domain_work, core.domain_work(v_domain));
end
$$;

comment on function api.begin_removal is
  'Start the removal of a domain''s identity at the provider; verdict is work or busy. The organisation can send from the domain until end_removal. Refuses not_found, rate_limited.';
