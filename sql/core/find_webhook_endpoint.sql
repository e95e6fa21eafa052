create function core.find_webhook_endpoint(endpoint text)
returns app.webhook_endpoints
language plpgsql stable
as $$
declare
  v_id uuid := core.decode_id('we', endpoint);
  v_endpoints app.webhook_endpoints[] := array(
    select p from app.webhook_endpoints p
    where p.id = v_id or v_id is null and p.url = endpoint);
begin
  perform core.check_is_one('webhook endpoint', endpoint, array(
    select format('%s (of %s)', core.encode_id('we', p.id), o.name)
    from unnest(v_endpoints) p
    join app.organisations o on o.id = p.organisation_id
    order by p.id), 'select id, organisation, url from ops.webhook_endpoints');
  return v_endpoints[1];
end
$$;

comment on function core.find_webhook_endpoint is
  'Returns the webhook endpoint with this ID or URL. Raises an error if there is none, or several.';
