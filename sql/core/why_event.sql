create function core.why_event(event app.webhook_events)
returns text
language sql stable
as $$
  with party as (
    select p.id from app.webhook_endpoints p
    where p.organisation_id = event.organisation_id and event.type = any (p.event_types) and event.message_id is not null
    union
    select d.endpoint_id from app.webhook_deliveries d where d.event_id = event.id
      and d.endpoint_id in (select p.id from app.webhook_endpoints p where p.organisation_id = event.organisation_id)
    union
    select a.endpoint_id from app.webhook_attempts a where a.event_id = event.id
  )
  select coalesce(
    string_agg(core.why_delivery(event, y.id), E'\n' order by y.id),
    format('No endpoint of %s has chosen %s.', core.encode_id('org', event.organisation_id), event.type))
  from party y
$$;

comment on function core.why_event is
  'What ops.why says of a webhook event: a sentence for each endpoint that chose its type or got it.';
