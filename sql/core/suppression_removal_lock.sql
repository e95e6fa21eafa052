create function core.suppression_removal_lock(organisation_id uuid)
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram forget suppressions ' || organisation_id, 0)
$$;

comment on function core.suppression_removal_lock is
  'The advisory lock between who adds an address for the provider to forget and the job that finds none left. Taken after all other locks, in the order of the organisations.';
