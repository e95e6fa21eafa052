create function core.is_member(organisation_id uuid, email text)
returns boolean
language sql stable
as $$
  select exists (
    select from app.members m
    join app.users u on u.id = m.user_id
    where m.organisation_id = is_member.organisation_id and u.email = is_member.email)
$$;

comment on function core.is_member is
  'Returns whether the user with an address, in lower case, is a member of an organisation.';
