create function api.sandbox_take(messages jsonb)
returns integer
language sql volatile security definer
set search_path = ''
as $$
  with taken as (
    insert into app.sandbox_messages as s (message_id, copy, receipts, taken_at, due_at)
    select m.id, m.copy, m.receipts, clock_timestamp(), clock_timestamp() + m.due_in_ms * interval '1 millisecond'
    from jsonb_to_recordset(messages) as m (id uuid, copy smallint, receipts jsonb, due_in_ms integer)
    order by m.id, m.copy
    on conflict (message_id, copy) do update set handovers = s.handovers + 1
    returning 1
  )
  select count(*)::integer from taken
$$;

comment on function api.sandbox_take is
  'The sandbox network takes messages: {id, copy (0 for a whole one), receipts, due_in_ms}; a second hand-over of one is counted, its receipts are not doubled.';
