create function core.insert_sms(accepted core.judged_sms[], items jsonb, at timestamptz)
returns void
language plpgsql volatile
as $$
begin
  -- One statement for both tables, because both need what the items say.
  with sms as materialized (
    select a as judged, i.*
    from jsonb_populate_recordset(null::core.accept_sms, items) with ordinality as i
    join unnest(accepted) a on a.place = i.ordinality
  ),
  new_messages as (
    insert into app.messages (
      status, id, organisation_id, channel, mode, class, from_address, to_address, tags, recipients,
      created_at, sent_at, error_code, error_message, is_sandbox, segments, credits, scheduled_at
    )
    select (s.judged).status, (s.judged).id, (s.judged).organisation_id, 'sms', (s.judged).mode, (s.judged).class,
      (s.judged).sender, s.recipient, s.tags, 1,
      insert_sms.at, case (s.judged).status when 'sent' then insert_sms.at end, (s.judged).obstacle, (s.judged).reason,
      s.is_sandbox is true, s.segments, (s.judged).credits, (s.judged).scheduled_at
    from sms s
  ),
  new_changes as (
    insert into app.status_changes (message_ids, change, occurred_at)
    select array_agg((s.judged).id), 'queued', insert_sms.at
    from sms s
    where (s.judged).mode = 'live' and s.is_sandbox is not true
    group by s.ordinality / 100
  )
  insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, text)
  select (s.judged).id, (s.judged).sender, array[s.recipient], '{}', '{}', array[s.recipient], s.body
  from sms s
  -- Nobody can see the body of a test message.
  where (s.judged).mode = 'live';

  -- Test messages that the marketing rules reject.
  insert into app.events (message_id, type, occurred_at, detail)
  select a.id, 'rejected', insert_sms.at, jsonb_build_object('code', a.obstacle, 'text', a.reason)
  from unnest(accepted) a
  where a.status = 'rejected';
end
$$;

comment on function core.insert_sms is
  'Insert accepted SMS, their bodies, their changes for the reports, and the events of rejected test messages.';
