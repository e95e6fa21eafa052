create function api.sandbox_knows(messages jsonb)
returns setof boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  select exists (
    select
    from app.sandbox_batches b
    cross join unnest(b.message_ids, b.copies) as t (message_id, copy)
    where b.message_ids @> array[m.id] and (t.message_id, t.copy) = (m.id, m.copy))
  from jsonb_populate_recordset(null::core.sandbox_copy, messages) with ordinality as m (id, copy, place)
  order by m.place
$$;

comment on function api.sandbox_knows is
  'Returns for each of these messages, in order, whether the sandbox network has taken it before.';
