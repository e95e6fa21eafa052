create function api.dashboard_replay_events(
  session text, organisation text, endpoint text, since timestamptz, until timestamptz, only_missed boolean
)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- As many as fit within the time of a request.
  c_most constant integer := 50000;
  v_endpoint app.webhook_endpoints := core.own_webhook_endpoint(
    core.member_of(dashboard_replay_events.session, dashboard_replay_events.organisation, 'member'),
    dashboard_replay_events.endpoint);
begin
  if (
    select count(*)
    from (
      select from core.events_for(v_endpoint,
        core.first_id_at(greatest(dashboard_replay_events.since, core.now() - interval '30 days')),
        core.first_id_at(least(dashboard_replay_events.until, core.now() + interval '1 day')),
        dashboard_replay_events.only_missed)
      limit c_most + 1
    ) e
  ) > c_most then
    perform core.refuse('validation_error', jsonb_build_object('until', jsonb_build_array(
      format('ends a period with more than %s events; choose a shorter one', c_most))));
  end if;
  return ops.replay_events(dashboard_replay_events.endpoint, dashboard_replay_events.since, dashboard_replay_events.until,
    dashboard_replay_events.only_missed);
end
$$;

comment on function api.dashboard_replay_events is
  'Replay the events of a period, at most 50 000, at a webhook endpoint of the organisation as ops.replay_events does, for a member. Returns the number of deliveries. Refuses as core.member_of does, with not_found, and with validation_error for a longer period.';
