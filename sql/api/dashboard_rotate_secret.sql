create function api.dashboard_rotate_secret(session text, organisation text, endpoint text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.own_webhook_endpoint(
    core.member_of(dashboard_rotate_secret.session, dashboard_rotate_secret.organisation, 'owner', is_fresh => true),
    dashboard_rotate_secret.endpoint);
  return ops.rotate_webhook_secret(dashboard_rotate_secret.endpoint);
end
$$;

comment on function api.dashboard_rotate_secret is
  'Give a webhook endpoint of the organisation a new secret as ops.rotate_webhook_secret does, for an owner with a fresh sign-in. Returns the secret. Refuses as core.member_of does, and with not_found.';
