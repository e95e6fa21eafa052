create function ops.invite(organisation text, email text, role text default 'member')
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.set_member(core.organisation_id(invite.organisation), invite.email, invite.role);
end
$$;

comment on function ops.invite is
  'Let a person sign in to the dashboard of an organisation, or change the role: owner, member or viewer.';
