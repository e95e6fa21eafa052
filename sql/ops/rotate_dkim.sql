create function ops.rotate_dkim(domain text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains := core.find_any_domain(domain);
  v_active text;
  v_next text;
  v_renew text;
begin
  select min(k.selector) filter (where k.state = 'active'), min(k.selector) filter (where k.state = 'next')
    into v_active, v_next
  from app.dkim_keys k
  where k.domain_id = v_domain.id;
  if v_active is null or v_next is null then
    raise exception 'the domain % has no next DKIM key yet; try again after its next check', v_domain.name;
  end if;
  select split_part(r.name, '.', 1) into v_renew
  from jsonb_to_recordset(v_domain.records) as r (purpose text, name text)
  where r.purpose = 'dkim' and split_part(r.name, '.', 1) not in (v_active, v_next);

  perform core.add_jobs(array[(
    'rotate_dkim',
    json_build_object('id', v_domain.id, 'activate', v_next, 'retire', v_active, 'renew', v_renew),
    null, null, null, 'rotate_dkim:' || v_domain.id, 100::smallint, null
  )::graphile_worker.job_spec]);
  perform core.audit('rotate_dkim', v_domain.organisation_id, v_domain.name,
    jsonb_build_object('active', v_active), jsonb_build_object('active', v_next));
  return format('%s will sign for %s instead of %s once its key is found in DNS', v_next, v_domain.name, v_active);
end
$$;

comment on function ops.rotate_dkim is
  'Replace the DKIM key that signs for a domain with its next key. The change happens once the next key is found in DNS. The old key is retired and a new next key is created. The owner of the domain changes nothing in DNS. Returns a sentence that names both keys.';
