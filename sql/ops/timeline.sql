create function ops.timeline(message text)
returns table (at timestamptz, type text, detail jsonb)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select e."occurredAt", e.type, e.detail
  from json_to_recordset(core.timeline(core.find_message(message))) e ("occurredAt" timestamptz, type text, detail jsonb)
$$;

comment on function ops.timeline is
  'Return the timeline of a message, oldest event first. The API shows the same timeline to the organisation. detail contains the recipient and the provider''s text.';
