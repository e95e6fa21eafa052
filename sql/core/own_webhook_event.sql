create function core.own_webhook_event(organisation_id uuid, event text)
returns app.webhook_events
language plpgsql stable
as $$
declare
  v_event app.webhook_events;
begin
  select e.* into v_event
  from app.webhook_events e
  where e.id = core.decode_id('evt', own_webhook_event.event)
    and e.organisation_id = own_webhook_event.organisation_id;
  if not found then
    perform core.refuse('not_found');
  end if;
  return v_event;
end
$$;

comment on function core.own_webhook_event is
  'Returns the webhook event with this ID (evt_…) of an organisation. Refuses with not_found if the organisation has none.';
