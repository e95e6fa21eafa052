create function core.delivery_state(
  endpoint app.webhook_endpoints, event_id uuid, last_attempt app.webhook_attempts, out state text, out due_at text
)
language sql stable
as $$
  select
    case
      when d.due_at is not null and d.attempts > 0 then 'deferred'
      when d.due_at is not null then 'queued'
      when last_attempt.started_at is null then 'skipped'
      when last_attempt.error is null then 'delivered'
      else 'failed'
    end,
    core.iso(d.due_at)
  from (values (1)) one
  -- A disabled endpoint delivers nothing, and its deliveries are deleted soon.
  left join app.webhook_deliveries d
    on d.endpoint_id = endpoint.id and d.event_id = delivery_state.event_id and endpoint.disabled_at is null
$$;

comment on function core.delivery_state is
  'Returns the state of an event at a webhook endpoint: queued, deferred (waits for the next attempt), delivered, failed (no attempts left, or disabled meanwhile) or skipped (never attempted); and when the next attempt is due.';
