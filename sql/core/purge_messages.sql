create function core.purge_messages(organisation_id uuid, at_most integer)
returns integer
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids constant uuid[] := array(
    select m.id from app.messages m
    where m.organisation_id = purge_messages.organisation_id
    order by m.id
    limit at_most
    for update);
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id constant uuid := v_ids[1];
  v_last_id constant uuid := v_ids[cardinality(v_ids)];
begin
  if v_ids = '{}' then
    return 0;
  end if;
  delete from app.bodies b where b.message_id = any (v_ids) and b.message_id between v_first_id and v_last_id;
  delete from app.events e where e.message_id = any (v_ids) and e.message_id between v_first_id and v_last_id;
  delete from app.sms_parts p where p.message_id = any (v_ids);
  delete from app.messages m where m.id = any (v_ids) and m.id between v_first_id and v_last_id;
  return cardinality(v_ids);
end
$$;

comment on function core.purge_messages is
  'Delete the oldest messages of an organisation that moved, with bodies, timelines and parts, at most at_most. Returns how many.';
