create function ops.why(message text)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if message like 'evt\_%' then
    return core.why_event(core.find_webhook_event(message));
  end if;
  return (select concat(w.reason, w.advice, '.') from core.why_message(core.find_message(message)) w);
end
$$;

comment on function ops.why is
  'Return the reason why a message waits, in one sentence. For the ID of a webhook event, evt_…, returns one sentence for each endpoint: whether it was delivered there, and if not, why.';
