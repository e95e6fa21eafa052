create function core.check_division()
returns text
language plpgsql volatile
as $$
declare
  v_problem text;
begin
  -- Waits for a division that begins at this moment, and the next statement sees it.
  perform pg_advisory_lock_shared(core.division_lock());
  v_problem := core.division_problem();
  if v_problem is not null then
    perform pg_advisory_unlock_shared(core.division_lock());
  end if;
  return v_problem;
end
$$;

comment on function core.check_division is
  'Share the lock that a division takes alone, on this connection until it closes. Returns null; or why no process may start, and does not keep the lock.';
