create function ops.delete_webhook_endpoint(endpoint text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.hold_webhook_endpoint(endpoint);
begin
  -- The clock removes the waiting deliveries (api.clear_deliveries): locking a million of them here would
  -- block the workers that finish some, and with them the deliveries of other endpoints.
  delete from app.webhook_endpoints p where p.id = v_endpoint.id;
  perform core.audit('delete_webhook_endpoint', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    jsonb_build_object('url', v_endpoint.url, 'event_types', v_endpoint.event_types), null);
end
$$;

comment on function ops.delete_webhook_endpoint is
  'Delete a webhook endpoint. Its waiting deliveries are removed within minutes. Its earlier attempts remain visible in ops.why.';
