create function api.dashboard_retry_stuck(session text, messages text[])
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform core.operator_of(dashboard_retry_stuck.session);
  select core.message_id(m.channel, m.id) || ': ' || r.problem into v_problem
  from core.retry_messages(array(
    select (core.find_message(x.message)).id from unnest(messages) x (message))) r
  join app.messages m on m.id = r.message_id
  limit 1;
  if v_problem is not null then
    raise exception '%', v_problem;
  end if;
  return cardinality(dashboard_retry_stuck.messages);
end
$$;

comment on function api.dashboard_retry_stuck is
  'Retry messages as ops.retry_message does, for an operator. Returns their number. Raises an error, and retries none, if one cannot be retried. Refuses as core.operator_of does.';
