create function api.enqueue_due_messages()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Bounded, so that one transaction never holds an hour's work; the caller calls again.
  c_limit constant integer := 20000;
  v_ids uuid[];
  v_due app.due_messages[];
begin
  -- Messages whose time comes.
  v_ids := array(
    select d.message_id
    from app.due_messages d
    where d.due_at <= core.now() + interval '90 seconds'
    limit c_limit
    for update skip locked);

  -- Held messages whose organisation may send again, and those that are too late: the worker rejects them.
  v_ids := v_ids || array(
    select d.message_id
    from app.due_messages d
    join app.organisations o on o.id = d.organisation_id
    where d.due_at is null and (o.state <> 'paused' or d.late_at < core.now())
    limit c_limit - cardinality(v_ids)
    for update of d skip locked);

  with released as (
    delete from app.due_messages d
    where d.message_id = any (v_ids)
    returning d.*
  )
  select array_agg(r::app.due_messages) into v_due from released r;
  return core.release_messages(v_due) + core.split_jobs(c_limit);
end
$$;

comment on function api.enqueue_due_messages is
  'Enqueue messages that are due within 90 seconds, each to its second, and held messages whose organisation may send again or that are too late. Replaces jobs of several messages that no worker takes. Returns how many, some 20 000 of each at most.';
