create function core.why_event(event app.webhook_events)
returns text
language sql stable
as $$
  with endpoint as (
    select p.id from app.webhook_endpoints p
    where p.organisation_id = event.organisation_id and event.type = any (p.event_types) and event.message_id is not null
    union
    select d.endpoint_id from app.webhook_deliveries d where d.event_id = event.id
      and d.endpoint_id in (select p.id from app.webhook_endpoints p where p.organisation_id = event.organisation_id)
    union
    select a.endpoint_id from app.webhook_attempts a where a.event_id = event.id
  )
  select coalesce(
    string_agg(core.why_delivery(event, p.id), E'\n' order by p.id),
    format('No endpoint of %s receives %s.', core.encode_id('org', event.organisation_id), event.type))
  from endpoint p
$$;

comment on function core.why_event is
  'Returns what ops.why says about a webhook event: one sentence for each endpoint that chose its type or received it.';
