create function core.settle_attempts(receipts jsonb)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select r.message_id from jsonb_to_recordset(receipts) as r (message_id uuid, type text) where r.type = 'sent');
  v_sent uuid[];
  v_changes core.message_change[];
begin
  with sent as (
    update app.messages m
    -- attempt_started_at stays: if that attempt is still in progress, its result adds the provider.
    set status = 'sent', sent_at = m.attempt_started_at
    where m.id = any (v_ids) and m.mode = 'live' and m.status = 'queued' and m.attempt_started_at is not null
      -- One copy that the provider has proves nothing about the other copies.
      and not (m.class = 'marketing' and m.channel = 'email' and m.recipients > 1)
    returning m.id, m.organisation_id
  )
  select array_agg(s.id), array_agg((s.id, s.organisation_id, 'sent')::core.message_change)
    into v_sent, v_changes
  from sent s;
  perform core.record_status_changes(v_changes);
  perform core.emit_events(v_changes);
  perform core.count_dequeued(v_sent);
end
$$;

comment on function core.settle_attempts is
  'Mark messages as sent that a provider says it has (receipts of type sent) and whose attempt had no known outcome. They must be locked.';
