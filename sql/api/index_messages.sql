create function api.index_messages()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Bounded, so that one transaction never holds minutes of work; the caller calls again.
  c_limit constant integer := 5000;
  -- No transaction waits longer than this before its first write, which gives it an ID: statement_timeout.
  c_margin constant interval := '60 seconds';
  c_settled_after constant interval := '1 day';
  v_accepted app.search_progress;
  v_settled uuid;
  v_ids uuid[];
  v_count integer := 0;
begin
  perform pg_advisory_xact_lock(core.search_lock());
  select * into v_accepted from app.search_progress p where p.pass = 'accepted';
  select p.indexed_until into v_settled from app.search_progress p where p.pass = 'settled';

  -- A message can commit after messages with later IDs, so the index follows only where every transaction has
  -- ended that may have made an ID.
  if v_accepted.seen_xid <= pg_snapshot_xmin(pg_current_snapshot()) then
    v_ids := core.index_accepted(v_accepted.indexed_until, core.first_id_at(v_accepted.seen_at - c_margin), c_limit);
    v_count := cardinality(v_ids);
    v_accepted.indexed_until := case when v_count = c_limit then v_ids[c_limit]
      else greatest(v_accepted.indexed_until, core.first_id_at(v_accepted.seen_at - c_margin)) end;
    if v_count < c_limit then
      v_accepted.seen_xid := null;
    end if;
  end if;
  if v_accepted.seen_xid is null then
    v_accepted.seen_at := core.now();
    v_accepted.seen_xid := pg_snapshot_xmax(pg_current_snapshot());
  end if;
  update app.search_progress p
  set indexed_until = v_accepted.indexed_until, seen_at = v_accepted.seen_at, seen_xid = v_accepted.seen_xid
  where p.pass = 'accepted';

  v_ids := core.index_settled(v_settled,
    least(v_accepted.indexed_until, core.first_id_at(core.now() - c_settled_after)), c_limit);
  v_count := v_count + cardinality(v_ids);
  if cardinality(v_ids) > 0 then
    update app.search_progress p set indexed_until = v_ids[cardinality(v_ids)] where p.pass = 'settled';
  end if;
  return v_count;
end
$$;

comment on function api.index_messages is
  'Add messages to the index of the search: those accepted some minutes ago, and the statuses of those that are a day old. Returns how many, at most 5 000 of each; one caller at a time.';
