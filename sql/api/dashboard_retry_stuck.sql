create function api.dashboard_retry_stuck(session text, messages text[])
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message text;
begin
  perform core.operator_of(dashboard_retry_stuck.session);
  foreach v_message in array dashboard_retry_stuck.messages loop
    perform ops.retry_message(v_message);
  end loop;
  return cardinality(dashboard_retry_stuck.messages);
end
$$;

comment on function api.dashboard_retry_stuck is
  'Retry messages as ops.retry_message does, for an operator. Returns their number. Refuses as core.operator_of does.';
