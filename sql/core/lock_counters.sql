create function core.lock_counters(organisation_ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  perform from app.counters c
  where c.organisation_id = any (organisation_ids)
  order by c.organisation_id
  for no key update;
end
$$;

comment on function core.lock_counters is
  'Lock the counters of organisations in the order of their ids, where several later steps lock some of them.';
