create function core.own_webhook_endpoint(organisation_id uuid, endpoint text)
returns app.webhook_endpoints
language plpgsql stable
as $$
declare
  v_endpoint app.webhook_endpoints;
begin
  select p.* into v_endpoint
  from app.webhook_endpoints p
  where p.id = core.decode_id('we', own_webhook_endpoint.endpoint)
    and p.organisation_id = own_webhook_endpoint.organisation_id;
  if not found then
    perform core.refuse('not_found');
  end if;
  return v_endpoint;
end
$$;

comment on function core.own_webhook_endpoint is
  'Returns the webhook endpoint with this ID (we_…) of an organisation. Refuses with not_found if the organisation has none.';
