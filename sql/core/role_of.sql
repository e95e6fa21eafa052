create function core.role_of(s app.sessions, organisation_id uuid)
returns app.member_role
language plpgsql stable
as $$
begin
  return coalesce(
    (select m.role from app.members m where m.organisation_id = role_of.organisation_id and m.user_id = s.user_id),
    -- A former operator views nothing, even in a session that began before.
    (select 'viewer'::app.member_role from app.users u
      where u.id = s.user_id and u.is_operator and s.viewed_organisation_id = role_of.organisation_id));
end
$$;

comment on function core.role_of is
  'Returns the role that the user of a session has in an organisation, viewer for an operator who views it; null if none.';
