create function core.purge_rows(organisation_id uuid, at_most integer)
returns integer
language plpgsql volatile
-- The tables with many rows have an index that begins with the organisation.
set enable_seqscan = off
as $$
declare
  v_table text;
  v_rows integer;
begin
  foreach v_table in array array[
    'idempotency_keys', 'complaints', 'suppressions', 'suppression_hashes', 'consents', 'credit_ledger', 'closed_periods',
    'plan_changes', 'daily_volume', 'daily_latencies', 'daily_bounces', 'named_bounces', 'request_counts', 'provider_calls'
  ]
  loop
    -- A row of a partition is known by its partition and its place in it.
    execute format(
      'with chosen as (select t.tableoid, t.ctid from app.%1$I t where t.organisation_id = $1 limit $2)
      delete from app.%1$I t using chosen c where t.organisation_id = $1 and (t.tableoid, t.ctid) = (c.tableoid, c.ctid)',
      v_table) using organisation_id, at_most;
    get diagnostics v_rows = row_count;
    if v_rows > 0 then
      return v_rows;
    end if;
  end loop;
  return 0;
end
$$;

comment on function core.purge_rows is
  'Delete rows of an organisation that moved from one of the tables that name only it, at most at_most. Returns how many; 0 when no table has any.';
