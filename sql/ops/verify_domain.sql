create function ops.verify_domain(organisation text, name text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_name text := lower(verify_domain.name);
  v_before jsonb;
  v_domain app.domains;
begin
  if v_name is null or length(v_name) > 253
    or v_name !~ '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' then
    raise exception '% is not a domain name', coalesce(quote_literal(verify_domain.name), 'null')
      using hint = 'write an international name in its ASCII form (xn--)';
  end if;
  select jsonb_build_object('status', d.status, 'is_manually_verified', d.is_manually_verified) into v_before
  from app.domains d
  where d.name = v_name
  for no key update;
  if core.is_claimed_elsewhere(v_name, core.now()) then
    raise exception 'an organisation of another cell has the domain %', v_name
      using hint = 'ops.release_domain there frees a domain that is not verified';
  end if;
  -- A claim that lapsed does not hold the name. Its identity at the provider is reused.
  perform core.end_claim(d) from app.domains d
  where d.name = v_name and d.organisation_id <> v_organisation and not core.holds_name(d)
    and core.is_under_way(d.change_since) is not true;
  delete from app.domains d
  where d.name = v_name and d.organisation_id is distinct from v_organisation and not core.holds_name(d)
    and core.is_under_way(d.change_since) is not true;
  perform core.update_name_claim(v_name);
  -- The next check creates the identity at the provider and stores its records.
  insert into app.domains as d (
    id, organisation_id, name, status, is_manually_verified, verified_at, last_checked_at, next_check_at, created_at)
  values (core.new_id(core.now()), v_organisation, v_name, 'verified', true, core.now(), core.now(), core.now(), core.now())
  on conflict on constraint domains_one_holder do update
    set status = 'verified', is_manually_verified = true, wrong_since = null,
      verified_at = coalesce(d.verified_at, excluded.verified_at),
      -- No longer a reservation, which a failed call would remove.
      change = null, change_since = null, next_check_at = coalesce(d.next_check_at, excluded.next_check_at)
    where d.organisation_id = v_organisation and d.change is distinct from 'removing'
  returning d.* into v_domain;
  if v_domain.id is null then
    raise exception 'another organisation has the domain %', v_name
      using hint = 'ops.release_domain frees a domain that is not verified';
  end if;
  perform core.update_name_claim(v_name);
  perform core.audit('verify_domain', v_organisation, v_name, v_before,
    jsonb_build_object('status', v_domain.status, 'is_manually_verified', v_domain.is_manually_verified));
  return core.encode_id('dom', v_domain.id);
end
$$;

comment on function ops.verify_domain is
  'Mark a domain of an organisation as verified without checking DNS. The domain is added if the organisation does not have it. Later checks never set it to failed. Meant for migrations and tests. Returns the domain''s ID.';
