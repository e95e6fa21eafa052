create function api.dashboard_retry_stuck(session text, messages text[])
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message text;
begin
  perform core.operator_of(dashboard_retry_stuck.session);
  -- All of them before ops.retry_message locks an allowance (ARCHITECTURE.md, lock order).
  perform m.id
  from app.messages m
  where m.id = any (array(
    select coalesce(core.decode_id('em', x.message), core.decode_id('sm', x.message)) from unnest(messages) x (message)))
  order by m.id
  for no key update;
  foreach v_message in array dashboard_retry_stuck.messages loop
    perform ops.retry_message(v_message);
  end loop;
  return cardinality(dashboard_retry_stuck.messages);
end
$$;

comment on function api.dashboard_retry_stuck is
  'Retry messages as ops.retry_message does, for an operator. Returns their number. Refuses as core.operator_of does.';
