create function api.sum_status_changes()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  -- Bounded, so that one transaction never holds an hour's work; the caller calls again.
  c_limit constant integer := 20000;
  v_taken core.unsummed_change[];
  v_changes core.counted_change[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('postgram reports', 0)) then
    return 0;
  end if;

  with taken as (
    delete from app.status_changes c
    where c.ctid = any (array(
      select s.ctid
      from (
        select n.ctid, sum(coalesce(cardinality(n.message_ids), 1)) over (rows unbounded preceding) as changes
        from (select c.ctid, c.message_ids from app.status_changes c limit c_limit) n
      ) s
      where s.changes <= c_limit))
    returning c.message_id, c.message_ids, c.change, c.occurred_at
  )
  select array_agg((i.message_id, t.change, t.occurred_at)::core.unsummed_change) into v_taken
  from taken t
  cross join unnest(coalesce(t.message_ids, array[t.message_id])) i (message_id);

  v_changes := core.counted_changes(v_taken);
  perform core.sum_volume(v_changes);
  perform core.sum_latencies(v_changes);
  perform core.sum_bounces(v_changes);
  perform core.index_changes(v_taken);
  return coalesce(cardinality(v_taken), 0);
end
$$;

comment on function api.sum_status_changes is
  'Add status changes of messages to the sums that reports are read from, and to the index of the search. Returns how many changes, at most 20 000; one caller at a time.';
