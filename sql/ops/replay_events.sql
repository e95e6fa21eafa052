create function ops.replay_events(endpoint text, since timestamptz, until timestamptz, only_missed boolean default false)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid;
  v_endpoint app.webhook_endpoints;
  v_endpoints app.webhook_endpoints[];
  v_events uuid[];
  v_first_id uuid;
  v_last_id uuid;
  v_count bigint := 0;
begin
  -- An ID of an endpoint is never taken for a name.
  if core.decode_id('we', endpoint) is null
    and (endpoint ~ '^org_' or exists (select from app.organisations o where lower(o.name) = lower(endpoint)))
  then
    v_organisation := core.organisation_id(endpoint);
  else
    v_endpoint := core.find_webhook_endpoint(endpoint);
    perform core.check_is_enabled(v_endpoint);
  end if;
  if since is null or until is null then
    raise exception 'since and until must not be null';
  elsif since >= until then
    raise exception 'since must be before until';
  elsif only_missed is null then
    raise exception 'only_missed must be true or false';
  elsif until <= core.now() - interval '30 days' then
    raise exception 'events can be replayed for 30 days; until is earlier than that';
  end if;

  v_first_id := core.first_id_at(greatest(since, core.now() - interval '30 days'));
  v_last_id := core.first_id_at(least(until, core.now() + interval '1 day'));
  v_endpoints := array(
    select p from app.webhook_endpoints p
    where p.id = v_endpoint.id or p.organisation_id = v_organisation and p.disabled_at is null
    order by p.id);
  foreach v_endpoint in array v_endpoints loop
    v_events := array(select core.events_for(v_endpoint, v_first_id, v_last_id, only_missed));
    perform core.add_deliveries(v_endpoint, v_events);
    v_count := v_count + cardinality(v_events);
  end loop;
  foreach v_endpoint in array v_endpoints loop
    -- The events are selected again: remembering up to a million for each endpoint needs too much memory.
    perform core.restart_deliveries(v_endpoint,
      array(select core.events_for(v_endpoint, v_first_id, v_last_id, only_missed)));
  end loop;
  if v_count > 0 then
    perform core.audit('replay_events', coalesce(v_organisation, v_endpoint.organisation_id),
      coalesce(core.encode_id('org', v_organisation), core.encode_id('we', v_endpoint.id)), null,
      jsonb_build_object('since', coalesce(core.iso(since), since::text), 'until', coalesce(core.iso(until), until::text),
        'only_missed', only_missed, 'deliveries', v_count));
  end if;
  return v_count;
end
$$;

comment on function ops.replay_events is
  'Deliver the webhook events of a period of time again. The period runs from since until before until, within the last 30 days. Give an endpoint, or an organisation for all of its enabled endpoints; each receives the event types that it chose. With only_missed => true only events that were not delivered are replayed. Returns the number of deliveries.';
