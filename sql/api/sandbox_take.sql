create function api.sandbox_take(messages jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  with batch as (
    select m.kind, m.due_in_ms, array_agg(m.id) as message_ids, array_agg(m.copy) as copies,
      jsonb_agg(m.reports) as reports
    from jsonb_populate_recordset(null::core.sandbox_item, messages)
      with ordinality as m (id, copy, kind, reports, due_in_ms, place)
    group by m.kind, m.due_in_ms, m.place / 100
  ),
  taken as (
    insert into app.sandbox_batches (message_ids, copies, taken_at)
    select b.message_ids, b.copies, clock_timestamp()
    from batch b
  )
  insert into app.sandbox_reports (kind, reports, due_at)
  select b.kind, b.reports, clock_timestamp() + b.due_in_ms * interval '1 millisecond'
  from batch b;
end
$$;

comment on function api.sandbox_take is
  'Record that the sandbox network takes messages. A message may be taken twice: its reports are made again, and are stored once, as those of other providers.';
