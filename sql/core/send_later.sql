create function core.send_later(
  channel app.channel, message_id uuid, organisation_id uuid, class app.class, delay interval
)
returns void
language plpgsql volatile
as $$
declare
  v_priority integer := core.priority(core.backlog(organisation_id), class);
begin
  -- A delay shorter than the clock's interval needs a job. Longer ones stay out of the job table, where jobs
  -- that are not due slow down fetching those that are.
  if delay <= interval '90 seconds' then
    perform core.add_jobs(array[core.send_job(channel, message_id, v_priority, now() + delay)]);
  else
    insert into app.due_messages (message_id, organisation_id, due_at, priority)
    values (message_id, organisation_id, core.now() + delay, v_priority)
    on conflict on constraint due_messages_pkey do update set due_at = excluded.due_at;
  end if;
end
$$;

comment on function core.send_later is 'Attempt a queued message after a delay.';
