create function api.sum_status_changes()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  -- Bounded, so that one transaction never holds an hour's work; the caller calls again.
  c_limit constant integer := 20000;
  v_taken app.status_changes[];
  v_changes core.counted_change[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('postgram reports', 0)) then
    return 0;
  end if;

  with taken as (
    delete from app.status_changes c
    where c.ctid = any (array(select n.ctid from app.status_changes n limit c_limit))
    returning c.*
  )
  select array_agg(t::app.status_changes) into v_taken from taken t;

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
