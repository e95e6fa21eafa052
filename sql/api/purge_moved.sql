create function api.purge_moved()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Bounded, so that locks are short; the caller calls again.
  c_limit constant integer := 1000;
  v_moved app.moved_organisations;
  v_rows integer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('postgram purge', 0)) then
    return 0;
  end if;
  select d.* into v_moved
  from app.moved_organisations d
  where d.purged_at is null and d.emptied_at is null
  order by d.organisation_id
  limit 1
  for update;
  if v_moved.organisation_id is null then
    return core.purge_terms();
  end if;
  v_rows := core.purge_messages(v_moved.organisation_id, c_limit);
  if v_rows = 0 then
    v_rows := core.purge_events(v_moved, c_limit);
  end if;
  if v_rows = 0 then
    v_rows := core.purge_rows(v_moved.organisation_id, c_limit);
  end if;
  if v_rows = 0 then
    update app.moved_organisations d set emptied_at = core.now() where d.organisation_id = v_moved.organisation_id;
    return 1;
  end if;
  return v_rows;
end
$$;

comment on function api.purge_moved is
  'Delete what is left of organisations that moved to another cell: a batch of at most 1 000 messages, events or rows, or one partition of the index of the search. Their rows of app.organisations stay for the audit, without the owner''s address. Returns how many rows, 0 when nothing is left; one caller at a time.';
