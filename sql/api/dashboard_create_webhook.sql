create function api.dashboard_create_webhook(session text, organisation text, url text, event_types text[])
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.member_of(dashboard_create_webhook.session, dashboard_create_webhook.organisation, 'owner', is_fresh => true);
  return (
    select jsonb_build_object('id', e.id, 'secret', e.secret)
    from ops.create_webhook_endpoint(dashboard_create_webhook.organisation, dashboard_create_webhook.url,
      dashboard_create_webhook.event_types) e);
end
$$;

comment on function api.dashboard_create_webhook is
  'Create a webhook endpoint as ops.create_webhook_endpoint does, for an owner with a fresh sign-in. Returns {id, secret}. Refuses as core.member_of does.';
