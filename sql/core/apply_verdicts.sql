create function core.apply_verdicts(ids uuid[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_departed uuid[];
begin
  with verdict as materialized (
    select m.id, m.status as old_status, v.*
    from app.messages m
    cross join lateral core.verdict(m) v
    where m.id = any (ids) and v.status is not null
  ),
  changed as (
    update app.messages m
    set status = v.status, delivered_at = v.delivered_at, error_code = v.error_code, error_message = v.error_message,
      -- It was handed over, though our own note of that is still to come, or lost in a crash.
      sent_at = coalesce(m.sent_at, m.handover_started_at, core.now())
    from verdict v
    where m.id = any (ids) and m.id = v.id
      and (m.status, m.delivered_at, m.error_code, m.error_message)
        is distinct from (v.status, v.delivered_at, v.error_code, v.error_message)
  )
  select array_agg(v.id) filter (where v.old_status = 'queued') into v_departed
  from verdict v;

  perform core.count_departures(v_departed);
end
$$;

comment on function core.apply_verdicts is
  'Give messages, which must be locked, the statuses that follow from their receipts.';
