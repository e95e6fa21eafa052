create function ops.set_owner_email(organisation text, owner_email text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_organisation uuid := core.organisation_id(organisation);
begin
  perform core.check_email(set_owner_email.owner_email);
  update app.organisations o set owner_email = set_owner_email.owner_email where o.id = v_organisation;
end
$$;

comment on function ops.set_owner_email is 'Change where mail to an organisation''s owner goes, from the next one on.';
