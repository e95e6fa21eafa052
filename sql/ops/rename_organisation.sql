create function ops.rename_organisation(organisation text, name text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.organisation_id(organisation);
  v_before text;
begin
  perform core.check_name(rename_organisation.name);
  select o.name into v_before from app.organisations o where o.id = v_organisation for no key update;
  update app.organisations o set name = rename_organisation.name where o.id = v_organisation;
  perform core.audit('rename_organisation', v_organisation, core.encode_id('org', v_organisation), jsonb_build_object('name', v_before),
    jsonb_build_object('name', rename_organisation.name));
end
$$;

comment on function ops.rename_organisation is 'Change the name of an organisation. Its ID stays the same.';
