create function core.check_has_owner(organisation_id uuid)
returns void
language plpgsql stable
as $$
begin
  if not exists (
    select from app.members m where m.organisation_id = check_has_owner.organisation_id and m.role = 'owner'
  ) then
    raise exception 'an organisation needs an owner; make another member its owner first';
  end if;
end
$$;

comment on function core.check_has_owner is 'Raises an error if the organisation has no owner in the dashboard.';
