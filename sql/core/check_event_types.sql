create function core.check_event_types(event_types text[])
returns app.webhook_event_type[]
language plpgsql immutable
as $$
declare
  v_types app.webhook_event_type[];
begin
  if event_types <@ enum_range(null::app.webhook_event_type)::text[] then
    v_types := array(select distinct t::app.webhook_event_type from unnest(event_types) t order by 1);
  end if;
  if coalesce(cardinality(v_types), 0) = 0 or cardinality(v_types) <> cardinality(event_types) then
    raise exception 'the event types must be one or more of %, each once',
      array_to_string(enum_range(null::app.webhook_event_type), ', ');
  end if;
  return v_types;
end
$$;

comment on function core.check_event_types is
  'Returns the given types of webhook events in the order of app.webhook_event_type. Raises an error if there are none, or if one is unknown or repeated.';
