create function core.events_for(
  endpoint app.webhook_endpoints, first_id uuid, last_id uuid, only_missed boolean
)
returns setof uuid
language sql stable
as $$
  select e.id
  from app.webhook_events e
  -- The bounds again exclude other partitions; an outer join, so that the plan can leave it out.
  left join app.webhook_attempts a on only_missed
    and a.endpoint_id = endpoint.id and a.event_id = e.id and a.error is null
    and a.event_id between first_id and last_id
  where e.organisation_id = endpoint.organisation_id
    and e.id between first_id and last_id
    and e.type = any (endpoint.event_types)
    and e.message_id is not null
    and a.event_id is null
$$;

comment on function core.events_for is
  'Returns the events of a range of IDs, inclusive, whose type an endpoint has chosen; with only_missed those that were not delivered there. Leaves out test events.';
