create function core.belongs_only_to(user_id uuid, organisation_id uuid)
returns boolean
language sql stable
as $$
  select exists (
      select from app.members m
      where m.user_id = belongs_only_to.user_id and m.organisation_id = belongs_only_to.organisation_id)
    and not exists (
      select from app.members m
      where m.user_id = belongs_only_to.user_id and m.organisation_id <> belongs_only_to.organisation_id)
    and not exists (
      select from app.users u where u.id = belongs_only_to.user_id and u.is_operator)
$$;

comment on function core.belongs_only_to is
  'Returns whether a user is a member of this organisation, of no other, and no operator. Owners see and end the sessions of these users only: anybody can be invited without being asked.';
