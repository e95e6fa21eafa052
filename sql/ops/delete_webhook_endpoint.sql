create function ops.delete_webhook_endpoint(endpoint text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_endpoint app.webhook_endpoints := core.find_webhook_endpoint(endpoint);
begin
  -- The endpoint last, as deliveries to others wait for whoever holds one.
  delete from app.webhook_deliveries d where d.endpoint_id = v_endpoint.id;
  delete from app.webhook_endpoints p where p.id = v_endpoint.id;
  perform core.audit('delete_webhook_endpoint', v_endpoint.organisation_id, endpoint,
    jsonb_build_object('url', v_endpoint.url, 'event_types', v_endpoint.event_types), null);
end
$$;

comment on function ops.delete_webhook_endpoint is
  'Delete an endpoint, with what waits for it. What it got ops.why still knows.';
