create function api.set_up_webhooks(allows_private boolean)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  update app.webhook_settings s
  set allows_private = set_up_webhooks.allows_private
  where s.allows_private <> set_up_webhooks.allows_private
$$;

comment on function api.set_up_webhooks is
  'Store the setting WEBHOOK_ALLOW_PRIVATE, which ops.create_webhook_endpoint and ops.set_webhook_endpoint obey.';
