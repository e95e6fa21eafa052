create function api.make_partitions()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- An interval of a month or a day depends on the session's time zone.
set timezone = 'UTC'
as $$
declare
  v_made integer := 0;
  v_month timestamptz;
  v_day timestamptz;
begin
  perform pg_advisory_xact_lock(hashtextextended('postgram partitions', 0));
  for v_month in
    select date_trunc('month', core.now(), 'UTC') + make_interval(months => m) from generate_series(0, 3) m
  loop
    select v_made + sum(core.make_id_partition(parent, v_month, '1 month', '_YYYY_MM')) into v_made
    from unnest(array['messages', 'events']) parent;
  end loop;
  -- Also of months that were there before the table.
  select v_made + sum(core.make_id_partition('message_terms', p.span_from, '1 month', '_YYYY_MM')) into v_made
  from core.partitions() p
  where p.parent = 'messages';
  -- Starts two days back: a transaction that began before midnight may end after it, and an idempotency key is
  -- looked up until its day is over.
  for v_day in
    select date_trunc('day', core.now(), 'UTC') + make_interval(days => d) from generate_series(-2, 31) d
  loop
    select v_made + sum(core.make_id_partition(parent, v_day, '1 day', '_YYYY_MM_DD')) into v_made
    from unnest(array['bodies', 'webhook_events', 'webhook_attempts']) parent;
    v_made := v_made + core.make_partition(
      'idempotency_keys', v_day::text, (v_day + interval '1 day')::text,
      'idempotency_keys' || to_char(v_day, '_YYYY_MM_DD'));
  end loop;
  return v_made;
end
$$;

comment on function api.make_partitions is
  'Create the partitions for this month and the next three, and the daily ones for a month ahead. Returns the number of partitions created.';
