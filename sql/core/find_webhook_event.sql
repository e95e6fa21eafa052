create function core.find_webhook_event(event text)
returns app.webhook_events
language plpgsql stable
as $$
declare
  v_event app.webhook_events;
begin
  select e.* into v_event
  from app.webhook_events e
  where e.id = core.decode_id('evt', event);
  if v_event.id is null then
    raise exception 'there is no event %', coalesce(quote_literal(event), 'null')
      using hint = 'select id, type, occurred_at from ops.webhook_events limit 20';
  end if;
  return v_event;
end
$$;

comment on function core.find_webhook_event is
  'Returns the webhook event with this ID. Raises an error if there is none.';
