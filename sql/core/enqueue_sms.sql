create function core.enqueue_sms(accepted core.judged_sms[], at timestamptz)
returns void
language plpgsql volatile
as $$
declare
  v_messages core.message_to_enqueue[];
begin
  with live as (
    select a.n, a.index, a.id, a.organisation_id, a.scheduled_at, a.is_far,
      core.priority(
        a.backlog + row_number() over (partition by a.organisation_id order by a.n, a.index), a.class) as priority
    from unnest(accepted) a
    where a.mode = 'live'
  ),
  -- In one statement with the jobs, so that each is counted in the priority of those behind it.
  waiting as (
    insert into app.due_messages (message_id, organisation_id, due_at, priority, late_at)
    select l.id, l.organisation_id, l.scheduled_at, l.priority, core.late_at(l.scheduled_at)
    from live l
    where l.is_far
  )
  select array_agg(
      (l.id, l.priority, now() + (l.scheduled_at - enqueue_sms.at))::core.message_to_enqueue order by l.n, l.index)
    into v_messages
  from live l
  where l.is_far is not true;
  perform core.add_jobs(core.send_jobs('sms', v_messages));
end
$$;

comment on function core.enqueue_sms is
  'Enqueue accepted live SMS, and let those that are scheduled for later wait in app.due_messages.';
