create function api.dashboard_enable_endpoint(session text, endpoint text, replay boolean)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_enable_endpoint.session);
  perform ops.enable_webhook_endpoint(dashboard_enable_endpoint.endpoint, dashboard_enable_endpoint.replay);
end
$$;

comment on function api.dashboard_enable_endpoint is
  'Enable a webhook endpoint as ops.enable_webhook_endpoint does, for an operator. Refuses as core.operator_of does.';
