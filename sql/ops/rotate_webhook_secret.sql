create function ops.rotate_webhook_secret(endpoint text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint app.webhook_endpoints := core.hold_webhook_endpoint(endpoint);
  v_secret text := core.make_secret();
begin
  update app.webhook_endpoints p
  set secret = v_secret, secret_sealed_by = null,
    old_secret = p.secret, old_secret_sealed_by = p.secret_sealed_by, old_secret_until = core.now() + interval '24 hours'
  where p.id = v_endpoint.id;
  perform core.audit('rotate_webhook_secret', v_endpoint.organisation_id, core.encode_id('we', v_endpoint.id),
    jsonb_build_object('old_secret_until', core.iso(v_endpoint.old_secret_until)),
    jsonb_build_object('old_secret_until', core.iso(core.now() + interval '24 hours')));
  return v_secret;
end
$$;

comment on function ops.rotate_webhook_secret is
  'Give a webhook endpoint a new signing secret and return it. The secret is shown only once. For 24 hours events are signed with the old secret as well. If a secret leaked, rotate twice to end it immediately.';
