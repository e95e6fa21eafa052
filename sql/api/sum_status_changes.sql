create function api.sum_status_changes()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  -- Bounded, so that one transaction never holds an hour's work; the caller calls again.
  c_limit constant integer := 20000;
  v_taken app.status_changes[];
  v_changes core.counted_change[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('postgram reports', 0)) then
    return 0;
  end if;

  with taken as (
    delete from app.status_changes c
    where c.ctid = any (array(select n.ctid from app.status_changes n limit c_limit))
    returning c.*
  )
  select array_agg(t::app.status_changes) into v_taken from taken t;

  v_changes := array(
    select row(
      (m.created_at at time zone 'UTC')::date, m.organisation_id, m.channel, m.class, m.tags, t.change,
      coalesce(m.segments, m.recipients), m.error_code, m.error_message,
      case t.change when 'sent' then m.sent_at when 'delivered' then m.delivered_at end
        - greatest(m.created_at, m.scheduled_at)
    )::core.counted_change
    from unnest(v_taken) t
    join app.messages m on m.id = t.message_id
    where m.mode = 'live' and not m.is_sandbox
      -- A message that an operator retried failed before, and counts once as failed.
      and (t.change <> 'failed' or not exists (
        select from app.events e where e.message_id = m.id and e.type = 'queued' and e.occurred_at <= t.occurred_at)));
  perform core.sum_volume(v_changes);
  perform core.sum_latencies(v_changes);
  perform core.sum_bounces(v_changes);
  perform core.index_changes(v_taken);
  return coalesce(cardinality(v_taken), 0);
end
$$;

comment on function api.sum_status_changes is
  'Add status changes of messages to the sums that reports are read from, and to the index of the search. Returns how many changes, at most 20 000; one caller at a time.';
