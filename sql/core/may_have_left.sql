create function core.may_have_left(message_id uuid)
returns boolean
language sql stable
as $$
  select
    exists (select from app.sms_parts p where p.message_id = m.id)
    -- Each attempt that the provider refused as a whole has an event. An attempt without an event was
    -- interrupted, so its outcome is unknown.
    or m.attempts > (
      select count(distinct e.detail -> 'attempt')
      from app.events e
      where e.message_id = m.id and e.type in ('deferred', 'failed') and e.provider_event_id is null
        and e.detail -> 'isAmbiguous' is null)
  from app.messages m
  where m.id = may_have_left.message_id
$$;

comment on function core.may_have_left is
  'Returns whether an SMS that is not marked sent may have reached its network, in part or whole, in one of its attempts. Such an SMS is not refunded.';
