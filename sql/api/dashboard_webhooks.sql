create function api.dashboard_webhooks(session text, organisation text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_webhooks.session, dashboard_webhooks.organisation);
begin
  return coalesce((
    select jsonb_agg(core.webhook_endpoint_object(p) order by p.id)
    from app.webhook_endpoints p
    where p.organisation_id = v_organisation), '[]');
end
$$;

comment on function api.dashboard_webhooks is
  'Returns the webhook endpoints of an organisation, the oldest first, as core.webhook_endpoint_object does. Refuses as core.member_of does.';
