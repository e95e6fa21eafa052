create function api.sandbox_take(messages jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into app.sandbox_messages as s (message_id, copy, kind, reports, taken_at, due_at)
  select m.id, m.copy, m.kind, m.reports, clock_timestamp(), clock_timestamp() + m.due_in_ms * interval '1 millisecond'
  from jsonb_populate_recordset(null::core.sandbox_item, messages) as m
  order by m.id, m.copy
  on conflict (message_id, copy) do update set attempts = s.attempts + 1;
end
$$;

comment on function api.sandbox_take is
  'Record that the sandbox network takes messages. A second attempt of a message is counted, and its reports are not doubled.';
