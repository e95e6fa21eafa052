create function ops.set_owner_email(organisation text, owner_email text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before text;
begin
  perform core.check_email(set_owner_email.owner_email);
  select o.owner_email into v_before from app.organisations o where o.id = v_organisation for no key update;
  update app.organisations o set owner_email = set_owner_email.owner_email where o.id = v_organisation;
  perform core.audit('set_owner_email', v_organisation, core.encode_id('org', v_organisation), jsonb_build_object('owner_email', v_before),
    jsonb_build_object('owner_email', set_owner_email.owner_email));
end
$$;

comment on function ops.set_owner_email is
  'Change the address of an organisation''s owner. New notices go to this address.';
