create function api.dashboard_enable_webhook(session text, organisation text, endpoint text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_enable_webhook.session, dashboard_enable_webhook.organisation, 'member'),
    dashboard_enable_webhook.endpoint);
  return ops.enable_webhook_endpoint(dashboard_enable_webhook.endpoint);
end
$$;

comment on function api.dashboard_enable_webhook is
  'Enable a webhook endpoint of the organisation as ops.enable_webhook_endpoint does, for a member. Returns the number of missed events. Refuses as core.member_of does, and with not_found.';
