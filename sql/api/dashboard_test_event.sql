create function api.dashboard_test_event(session text, organisation text, endpoint text, type text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_test_event.session, dashboard_test_event.organisation, 'member'),
    dashboard_test_event.endpoint);
  return ops.send_test_event(dashboard_test_event.endpoint, dashboard_test_event.type);
end
$$;

comment on function api.dashboard_test_event is
  'Send a sample event to a webhook endpoint of the organisation as ops.send_test_event does, for a member. Returns the ID of the event. Refuses as core.member_of does, and with not_found.';
