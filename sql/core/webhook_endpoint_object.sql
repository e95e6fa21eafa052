create function core.webhook_endpoint_object(endpoint app.webhook_endpoints)
returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'id', core.encode_id('we', endpoint.id),
    'url', endpoint.url,
    'eventTypes', endpoint.event_types,
    'state', case when endpoint.disabled_at is not null then 'disabled'
      when endpoint.failing_since is not null then 'failing' else 'enabled' end,
    'failingSince', core.iso(endpoint.failing_since),
    'lastError', endpoint.last_error,
    'disabledAt', core.iso(endpoint.disabled_at),
    'disabledReason', endpoint.disabled_reason,
    'oldSecretUntil', case when endpoint.old_secret_until > core.now() then core.iso(endpoint.old_secret_until) end,
    'createdAt', core.iso(endpoint.created_at),
    'waiting', case when endpoint.disabled_at is null then (
        select count(*)
        from (select from app.webhook_deliveries d where d.endpoint_id = endpoint.id limit 1001) d)
      else 0 end,
    'attempts', h.attempts,
    'succeeded', h.succeeded)
  from (
    select coalesce(sum(w.attempts), 0) as attempts, coalesce(sum(w.succeeded), 0) as succeeded
    from (
      select w.hour, w.attempts, w.succeeded from app.webhook_hours w where w.endpoint_id = endpoint.id
      union all
      select endpoint.counted_hour, endpoint.hour_attempts, endpoint.hour_succeeded
    ) w
    where w.hour > core.now() - interval '24 hours'
  ) h
$$;

comment on function core.webhook_endpoint_object is
  'Returns a webhook endpoint as pages show it, without its secrets. waiting is counted up to 1 001. attempts and succeeded are those of the last 24 hours, by whole hours.';
