create function api.dashboard_delete_webhook(session text, organisation text, endpoint text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_delete_webhook.session, dashboard_delete_webhook.organisation, 'member'),
    dashboard_delete_webhook.endpoint);
  perform ops.delete_webhook_endpoint(dashboard_delete_webhook.endpoint);
end
$$;

comment on function api.dashboard_delete_webhook is
  'Delete a webhook endpoint of the organisation as ops.delete_webhook_endpoint does, for a member. Refuses as core.member_of does, and with not_found.';
