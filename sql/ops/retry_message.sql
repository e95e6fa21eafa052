create function ops.retry_message(message text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message app.messages := core.find_message(message);
  v_problem text;
begin
  select r.problem into v_problem from core.retry_messages(array[v_message.id]) r;
  if v_problem is not null then
    raise exception '%', v_problem;
  end if;
end
$$;

comment on function ops.retry_message is
  'Attempt to send a message now. The message must be waiting for an attempt, or be an email that failed before a provider accepted it. Raises an error for any other message.';
