create function api.dashboard_change_webhook(session text, organisation text, endpoint text, url text, event_types text[])
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_change_webhook.session, dashboard_change_webhook.organisation, 'member'),
    dashboard_change_webhook.endpoint);
  perform ops.set_webhook_endpoint(dashboard_change_webhook.endpoint, dashboard_change_webhook.url,
    dashboard_change_webhook.event_types);
end
$$;

comment on function api.dashboard_change_webhook is
  'Change a webhook endpoint of the organisation as ops.set_webhook_endpoint does, for a member. Refuses as core.member_of does, and with not_found.';
