create function ops.remove_member(organisation text, email text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.remove_member(core.organisation_id(remove_member.organisation), remove_member.email);
end
$$;

comment on function ops.remove_member is
  'Remove a person from the dashboard of an organisation. Its last owner cannot be removed.';
