create function ops.disable_webhook_endpoint(endpoint text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.find_webhook_endpoint(endpoint);
begin
  if coalesce(length(reason), 0) not between 1 and 1000 then
    raise exception 'the reason must be 1 to 1000 characters';
  end if;
  update app.webhook_endpoints p
  set disabled_at = core.now(), disabled_reason = reason
  where p.id = v_endpoint.id and p.disabled_at is null;
  if not found then
    raise exception 'the endpoint is already disabled'
      using hint = 'select id, disabled_at, disabled_reason from ops.failing_endpoints';
  end if;
  perform core.audit('disable_webhook_endpoint', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    '{"disabled_reason": null}', jsonb_build_object('disabled_reason', reason));
end
$$;

comment on function ops.disable_webhook_endpoint is
  'Stop deliveries to a webhook endpoint. Events are still recorded; ops.enable_webhook_endpoint can replay them.';
