create function core.suppression_removal_lock(organisation_id uuid)
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram forget suppressions ' || organisation_id, 0)
$$;

comment on function core.suppression_removal_lock is
  'Returns the key of the advisory lock between adding an address to remove at the provider and the job that finds none left. Taken after all other locks, in the order of the organisations.';
