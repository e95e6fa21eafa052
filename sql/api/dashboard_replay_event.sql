create function api.dashboard_replay_event(session text, organisation text, event text, endpoint text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_replay_event.session, dashboard_replay_event.organisation, 'member');
begin
  perform core.own_webhook_event(v_organisation, dashboard_replay_event.event);
  perform core.own_webhook_endpoint(v_organisation, dashboard_replay_event.endpoint);
  perform ops.replay_event(dashboard_replay_event.event, dashboard_replay_event.endpoint);
end
$$;

comment on function api.dashboard_replay_event is
  'Replay an event of the organisation at one of its endpoints as ops.replay_event does, for a member. Refuses as core.member_of does, and with not_found.';
