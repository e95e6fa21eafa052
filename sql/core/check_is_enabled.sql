create function core.check_is_enabled(endpoint app.webhook_endpoints)
returns void
language plpgsql stable
as $$
declare
  v_id constant text := core.encode_id('we', endpoint.id);
begin
  if endpoint.disabled_at is not null then
    raise exception 'the endpoint % is disabled; enable it with select ops.enable_webhook_endpoint(%)', v_id, quote_literal(v_id);
  end if;
end
$$;

comment on function core.check_is_enabled is 'Raises an error if a webhook endpoint is disabled.';
