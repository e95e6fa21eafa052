create function core.read_messages(
  organisation_id uuid, first_id uuid, last_id uuid, except_id uuid, at_most integer
)
returns setof app.messages
language plpgsql stable
set enable_seqscan = off
set jit = off
-- A plan for any organisation takes the primary key, which leads through the messages of all of them.
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select m.*
  from app.messages m
  where m.organisation_id = read_messages.organisation_id and m.id between first_id and last_id and m.id <> except_id
  order by m.id desc
  limit at_most;
end
$$;

comment on function core.read_messages is
  'Returns messages of an organisation from one ID to another, without a third, newest first.';
