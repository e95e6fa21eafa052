create function core.end_messages(endings core.ending[])
returns integer
language plpgsql volatile
as $$
declare
  v_ended uuid[];
  v_rejected uuid[];
  v_changes core.message_change[];
begin
  if coalesce(cardinality(endings), 0) = 0 then
    return 0;
  end if;
  with ended as (
    update app.messages m
    set status = e.status, error_code = e.code, error_message = e.reason
    from unnest(endings) e
    where m.id = e.message_id and m.status in ('queued', 'scheduled')
    returning m.id, m.organisation_id, e.status, e.code, e.reason
  ),
  recorded as (
    insert into app.events (message_id, type, occurred_at, detail)
    select e.id, e.status::text::app.event_type, core.now(), jsonb_build_object('code', e.code, 'text', e.reason)
    from ended e
  )
  select array_agg(e.id), array_agg(e.id) filter (where e.status = 'rejected'),
    array_agg((e.id, e.organisation_id, e.status::text)::core.message_change)
    into v_ended, v_rejected, v_changes
  from ended e;
  perform core.record_status_changes(v_changes);
  perform core.emit_events(v_changes);
  perform core.count_dequeued(v_ended);
  perform core.refund_sms(v_rejected);
  return coalesce(cardinality(v_ended), 0);
end
$$;

comment on function core.end_messages is
  'End waiting messages that the caller has locked: rejected (never sent, so refunded) or failed (possibly sent). Returns their number.';
