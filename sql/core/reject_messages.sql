create function core.reject_messages(ids uuid[], code text, reason text)
returns integer
language plpgsql volatile
as $$
declare
  v_rejected uuid[];
begin
  if ids is null then
    return 0;
  end if;
  with rejected as (
    update app.messages m
    set status = 'rejected', error_code = reject_messages.code, error_message = reason
    where m.id = any (ids) and m.status in ('queued', 'scheduled')
    returning m.id
  ),
  recorded as (
    insert into app.events (message_id, type, occurred_at, detail)
    select r.id, 'rejected', core.now(), jsonb_build_object('code', reject_messages.code, 'text', reason)
    from rejected r
  )
  select array_agg(r.id) into v_rejected from rejected r;
  perform core.count_departures(v_rejected);
  perform core.refund_sms(v_rejected);
  return coalesce(cardinality(v_rejected), 0);
end
$$;

comment on function core.reject_messages is 'End messages that never left, with an error code of design section 7.';
