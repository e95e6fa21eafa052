create function core.find_webhook_endpoint(endpoint text)
returns app.webhook_endpoints
language plpgsql stable
as $$
declare
  v_endpoint app.webhook_endpoints;
begin
  select p.* into v_endpoint
  from app.webhook_endpoints p
  where p.id = core.decode_id('we', endpoint);
  if v_endpoint.id is null then
    raise exception 'there is no webhook endpoint %', coalesce(quote_literal(endpoint), 'null')
      using hint = 'select id, organisation, url from ops.webhook_endpoints';
  end if;
  return v_endpoint;
end
$$;

comment on function core.find_webhook_endpoint is
  'The webhook endpoint that an operator named; raises one sentence when there is none.';
