create function core.first_replayable_id()
returns uuid
language sql stable
as $$
  select core.first_id_at(core.now() - interval '30 days')
$$;

comment on function core.first_replayable_id is
  'Returns the lower bound of the IDs of events that can be replayed: those of the last 30 days.';
