create function api.check_failing_endpoints()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := core.now();
  v_ids uuid[] := array(
    select e.id from app.webhook_endpoints e
    where e.disabled_at is null and e.failing_since <= v_now - interval '1 day'
      and (e.warned_at is null or e.failing_since <= v_now - interval '3 days'));
  v_warned uuid[];
  v_disabled uuid[];
begin
  perform core.lock_endpoints(v_ids);

  with disabled as (
    update app.webhook_endpoints e
    set disabled_at = v_now
    where e.id = any (v_ids) and e.disabled_at is null and e.failing_since <= v_now - interval '3 days'
      -- All attempts of an event together take longer than this, unless no attempt was made: time in which the
      -- service was down does not count against the endpoint.
      and e.failed_at >= e.failing_since + interval '1 day'
    returning e.id
  )
  select array_agg(d.id) into v_disabled from disabled d;
  perform core.audit('check_failing_endpoints', e.organisation_id, core.encode_id('we', e.id),
    '{"disabled_reason": null}', '{"disabled_reason": "failing"}')
  from app.webhook_endpoints e
  where e.id = any (v_disabled);

  with warned as (
    update app.webhook_endpoints e
    set warned_at = v_now
    where e.id = any (v_ids) and e.disabled_at is null
      and e.failing_since <= v_now - interval '1 day' and e.warned_at is null
    returning e.id
  )
  select array_agg(w.id) into v_warned from warned w;

  perform core.notify_owner(
    e.organisation_id,
    case when e.disabled_at is null then 'webhook_failing' else 'webhook_disabled' end,
    jsonb_build_object('endpoint', core.encode_id('we', e.id), 'url', e.url,
      'failingSince', core.iso(e.failing_since), 'lastError', e.last_error))
  from app.webhook_endpoints e
  where e.id = any (v_disabled || v_warned);
  return coalesce(cardinality(v_disabled || v_warned), 0);
end
$$;

comment on function api.check_failing_endpoints is
  'Warn the owners of endpoints that have failed for 1 day, and disable endpoints that have failed for 3 days, with a notice for each. Returns the number of endpoints.';
