create function api.dashboard_disable_webhook(session text, organisation text, endpoint text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_disable_webhook.session, dashboard_disable_webhook.organisation, 'member'),
    dashboard_disable_webhook.endpoint);
  perform ops.disable_webhook_endpoint(dashboard_disable_webhook.endpoint, dashboard_disable_webhook.reason);
end
$$;

comment on function api.dashboard_disable_webhook is
  'Disable a webhook endpoint of the organisation as ops.disable_webhook_endpoint does, for a member. Refuses as core.member_of does, and with not_found.';
