create function core.apply_receipt_statuses(ids uuid[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
  v_verdicts core.receipt_verdict[];
  v_dequeued uuid[];
  v_changes core.message_change[];
  v_first core.message_change[];
begin
  if coalesce(cardinality(ids), 0) = 0 then
    return;
  end if;
  v_verdicts := array(
    select row(m.id, m.organisation_id, m.status, m.sent_at, m.error_code, s.*)::core.receipt_verdict
    from app.messages m
    cross join lateral core.receipt_status(m) s
    where m.id = any (ids) and m.id between v_first_id and v_last_id and s.status is not null);

  perform core.update_receipt_statuses(v_verdicts);

  -- Receipts that came together are reported one by one, as if each had come alone.
  select array_agg((v.message_id, v.organisation_id, c.change)::core.message_change),
    -- A soft bounce that becomes a hard one is reported by an event, but is still counted once.
    array_agg((v.message_id, v.organisation_id, c.change)::core.message_change)
      filter (where c.change <> v.old_status::text)
    into v_changes, v_first
  from unnest(v_verdicts) v
  cross join lateral (values
    ('sent', v.old_sent_at is null),
    ('delivered', v.delivered_at is not null and v.old_status in ('queued', 'sent')),
    (case v.error_code
      when 'hard_bounce' then 'bounced' when 'soft_bounce' then 'bounced' when 'expired' then 'expired' else 'failed'
    end, v.error_code <> coalesce(v.old_error_code, '')),
    ('complained', v.status = 'complained' and v.old_status <> 'complained')
  ) c (change, is_new)
  where c.is_new;
  perform core.record_status_changes(v_first);
  perform core.emit_events(v_changes);

  v_dequeued := array(select v.message_id from unnest(v_verdicts) v where v.old_status = 'queued');
  perform core.count_dequeued(v_dequeued);
end
$$;

comment on function core.apply_receipt_statuses is
  'Give messages, which must be locked, the statuses that follow from their receipts, and report the changes.';
