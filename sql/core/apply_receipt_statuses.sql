create function core.apply_receipt_statuses(ids uuid[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_departed uuid[];
  v_changes core.message_change[];
  v_first core.message_change[];
begin
  with verdict as materialized (
    select m.id, m.organisation_id, m.status as old_status, m.sent_at as old_sent_at, m.error_code as old_error_code, v.*
    from app.messages m
    cross join lateral core.verdict(m) v
    where m.id = any (ids) and v.status is not null
  ),
  changed as (
    update app.messages m
    set status = v.status, delivered_at = v.delivered_at, error_code = v.error_code, error_message = v.error_message,
      -- It was handed over, though our own note of that is still to come, or lost in a crash.
      sent_at = coalesce(m.sent_at, m.attempt_started_at, core.now())
    from verdict v
    where m.id = any (ids) and m.id = v.id
      and (m.status, m.delivered_at, m.error_code, m.error_message)
        is distinct from (v.status, v.delivered_at, v.error_code, v.error_message)
  ),
  -- Receipts that came together are told one by one, as if each had come alone.
  news as (
    select (v.id, v.organisation_id, n.change)::core.message_change as change,
      -- A bounce that turns out to be a hard one is reported once more, and is still one bounce.
      n.change <> v.old_status::text as is_first
    from verdict v
    cross join lateral (values
      ('sent', v.old_sent_at is null),
      ('delivered', v.delivered_at is not null and v.old_status in ('queued', 'sent')),
      (case v.error_code
        when 'hard_bounce' then 'bounced' when 'soft_bounce' then 'bounced' when 'expired' then 'expired' else 'failed'
      end, v.error_code <> coalesce(v.old_error_code, '')),
      ('complained', v.status = 'complained' and v.old_status <> 'complained')
    ) n (change, is_new)
    where n.is_new
  )
  select (select array_agg(v.id) from verdict v where v.old_status = 'queued'), (select array_agg(n.change) from news n),
      (select array_agg(n.change) from news n where n.is_first)
    into v_departed, v_changes, v_first;
  perform core.record_status_changes(v_first);
  perform core.emit_events(v_changes);
  perform core.count_dequeued(v_departed);
end
$$;

comment on function core.apply_receipt_statuses is
  'Give messages, which must be locked, the statuses that follow from their receipts, and report that.';
