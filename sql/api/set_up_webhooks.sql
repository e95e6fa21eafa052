create function api.set_up_webhooks(allows_private boolean)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  update app.webhook_settings s
  set allows_private = set_up_webhooks.allows_private
  where s.allows_private <> set_up_webhooks.allows_private
$$;

comment on function api.set_up_webhooks is 'Keep what the service was started with (WEBHOOK_ALLOW_PRIVATE), for those who make endpoints in psql.';
