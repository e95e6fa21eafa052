create function core.settle_attempts(receipts jsonb)
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select r.message_id from jsonb_to_recordset(receipts) as r (message_id uuid, type text) where r.type = 'sent');
  v_departed uuid[];
  v_changes core.message_change[];
begin
  with settled as (
    update app.messages m
    -- attempt_started_at stays: should that hand-over still be under way, its end adds the provider.
    set status = 'sent', sent_at = m.attempt_started_at
    where m.id = any (v_ids) and m.mode = 'live' and m.status = 'queued' and m.attempt_started_at is not null
      -- A copy that was taken says nothing of the other copies.
      and not (m.class = 'marketing' and m.channel = 'email' and m.recipients > 1)
    returning m.id, m.organisation_id
  )
  select array_agg(s.id), array_agg((s.id, s.organisation_id, 'sent')::core.message_change)
    into v_departed, v_changes
  from settled s;
  perform core.record_status_changes(v_changes);
  perform core.emit_events(v_changes);
  perform core.count_dequeued(v_departed);
end
$$;

comment on function core.settle_attempts is
  'Of messages that a provider says it has (receipts of type sent), those whose hand-over had no known outcome are sent. They must be locked.';
