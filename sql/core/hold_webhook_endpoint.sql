create function core.hold_webhook_endpoint(endpoint text)
returns app.webhook_endpoints
language plpgsql volatile
as $$
declare
  v_id uuid := (core.find_webhook_endpoint(endpoint)).id;
begin
  perform from app.webhook_endpoints p where p.id = v_id for no key update;
  -- As whoever held it left it.
  return core.find_webhook_endpoint(core.encode_id('we', v_id));
end
$$;

comment on function core.hold_webhook_endpoint is
  'The webhook endpoint that an operator named, locked, so that of two who change it at once the second sees what the first did; raises one sentence when there is none or several.';
