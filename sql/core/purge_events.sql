create function core.purge_events(moved app.moved_organisations, at_most integer)
returns integer
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids constant uuid[] := array(
    select v.id from app.webhook_events v
    where v.organisation_id = moved.organisation_id
    order by v.id
    limit at_most);
  v_first_id constant uuid := v_ids[1];
  v_last_id constant uuid := v_ids[cardinality(v_ids)];
begin
  if v_ids = '{}' then
    return 0;
  end if;
  -- Attempts at endpoints that were deleted earlier are not found by an index; retention deletes them.
  delete from app.webhook_attempts a
  where a.endpoint_id = any (moved.endpoint_ids) and a.event_id = any (v_ids)
    and a.event_id between v_first_id and v_last_id;
  delete from app.webhook_hours h where h.endpoint_id = any (moved.endpoint_ids);
  delete from app.webhook_events v where v.id = any (v_ids) and v.id between v_first_id and v_last_id;
  return cardinality(v_ids);
end
$$;

comment on function core.purge_events is
  'Delete the oldest webhook events of an organisation that moved, with their attempts, at most at_most. Returns how many.';
