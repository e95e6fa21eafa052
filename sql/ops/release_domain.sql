create function ops.release_domain(name text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := coalesce(
    (select d.name from app.domains d where d.id = core.decode_id('dom', release_domain.name)),
    lower(release_domain.name));
  v_domain app.domains;
begin
  -- Lock order: the organisation before its objects.
  perform core.lock_organisations(array(select d.organisation_id from app.domains d where d.name = v_name));
  select d.* into v_domain from app.domains d where d.name = v_name for no key update;
  if v_domain.id is null or v_domain.organisation_id is null then
    raise exception 'no organisation has the domain %', coalesce(quote_literal(release_domain.name), 'null')
      using hint = 'select name, organisation, status from ops.domains';
  elsif v_domain.status = 'verified' then
    raise exception '% is verified for %', v_name, core.encode_id('org', v_domain.organisation_id)
      using hint = 'only a pending or failed domain can be released';
  elsif core.is_under_way(v_domain.change_since) then
    raise exception '% is being added or removed', v_name using hint = 'try again in 2 minutes';
  end if;
  perform core.end_claim(v_domain);
  if v_domain.provider is null then
    delete from app.domains d where d.id = v_domain.id;
  else
    update app.domains d
    set organisation_id = null, status = 'failed', change = null, change_since = null, wrong_since = null, next_check_at = null
    where d.id = v_domain.id;
    perform core.add_jobs(array[(
      'release_domain', json_build_object('id', v_domain.id), null, null, null, 'release_domain:' || v_domain.id,
      100::smallint, null
    )::graphile_worker.job_spec]);
  end if;
  perform core.update_name_claim(v_name);
  perform core.audit('release_domain', v_domain.organisation_id, v_name,
    jsonb_build_object('organisation', core.encode_id('org', v_domain.organisation_id), 'status', v_domain.status), null);
  return core.encode_id('org', v_domain.organisation_id);
end
$$;

comment on function ops.release_domain is
  'Free a domain name that an organisation has not verified. The domain must be pending or failed. Another organisation can add the name immediately, and the provider''s identity for it is removed. Returns the ID of the organisation that held it.';
