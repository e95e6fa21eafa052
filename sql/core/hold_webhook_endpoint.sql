create function core.hold_webhook_endpoint(endpoint text)
returns app.webhook_endpoints
language plpgsql volatile
as $$
declare
  v_id uuid := (core.find_webhook_endpoint(endpoint)).id;
begin
  perform from app.webhook_endpoints p where p.id = v_id for no key update;
  -- Reads the row again: another session may have changed it before the lock.
  return core.find_webhook_endpoint(core.encode_id('we', v_id));
end
$$;

comment on function core.hold_webhook_endpoint is
  'Returns and locks the webhook endpoint with this ID or URL, so that the second of two concurrent changes sees the first. Raises an error if there is none, or several.';
