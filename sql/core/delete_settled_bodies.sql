create function core.delete_settled_bodies(partition_name text)
returns integer
language plpgsql volatile
as $$
declare
  v_waiting uuid[];
begin
  execute format(
    'select array_agg(m.id) from app.%I b join app.messages m on m.id = b.message_id where m.status in (''queued'', ''scheduled'')',
    partition_name) into v_waiting;
  if v_waiting is not null then
    execute format('delete from app.%I b where b.message_id <> all ($1)', partition_name) using v_waiting;
  end if;
  return coalesce(cardinality(v_waiting), 0);
end
$$;

comment on function core.delete_settled_bodies is
  'Delete the rows of an expired partition of app.bodies except those of messages that still wait. Returns the number of rows that remain; with 0 the partition can be dropped.';
