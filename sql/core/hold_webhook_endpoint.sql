create function core.hold_webhook_endpoint(endpoint text)
returns app.webhook_endpoints
language plpgsql volatile
as $$
begin
  perform from app.webhook_endpoints p where p.id = core.decode_id('we', endpoint) for no key update;
  -- As whoever held it left it.
  return core.find_webhook_endpoint(endpoint);
end
$$;

comment on function core.hold_webhook_endpoint is
  'The webhook endpoint of that id, locked, so that of two who change it at once the second sees what the first did; raises one sentence when there is none.';
