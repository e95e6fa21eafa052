create function ops.delete_webhook_endpoint(endpoint text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.hold_webhook_endpoint(endpoint);
begin
  -- What waits for it is for the clock (api.clear_deliveries): to hold a million of its deliveries would
  -- keep those waiting who finish some, and with them all that they finish for others.
  delete from app.webhook_endpoints p where p.id = v_endpoint.id;
  perform core.audit('delete_webhook_endpoint', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    jsonb_build_object('url', v_endpoint.url, 'event_types', v_endpoint.event_types), null);
end
$$;

comment on function ops.delete_webhook_endpoint is
  'Delete a webhook endpoint. Its waiting deliveries are cleared within minutes; ops.why still knows its earlier ones.';
