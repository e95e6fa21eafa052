create function core.leave_to_old_cell(organisation_ids uuid[])
returns void
language sql volatile
as $$
  delete from app.notices n
  using app.users u
  where n.organisation_id is null and n.sent_at is null and n.failed_at is null and u.email = n.email
    and (u.is_operator
      or exists (select from app.members m where m.user_id = u.id and m.organisation_id = any (organisation_ids)));
  -- Names that were released, whose identity the old cell removes from the provider.
  delete from app.domains d where d.organisation_id is null
$$;

comment on function core.leave_to_old_cell is
  'Delete from a copy what belongs to no organisation and what the old cell, with these organisations, does: sign-in links to be sent to its users, and released domains.';
