create function ops.after_restore()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer;
begin
  if core.has_process('worker') then
    raise exception 'a worker is running: stop it first, as it may hand over meanwhile what this is about';
  end if;
  with waiting as (
    select (j.payload ->> 'id')::uuid as id
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier in ('send_email', 'send_sms')
    union
    select d.message_id
    from app.due_messages d
    join app.messages m on m.id = d.message_id
    where coalesce(m.scheduled_at, m.created_at) <= core.now()
  )
  update app.messages m
  set attempt_started_at = core.now(), attempts = m.attempts + 1
  from waiting w
  where m.id = w.id and m.mode = 'live' and not m.is_sandbox and m.status in ('queued', 'scheduled')
    and m.attempt_started_at is null;
  get diagnostics v_count = row_count;
  perform core.audit('after_restore', null, null, null, jsonb_build_object('messages', v_count));
  return v_count;
end
$$;

comment on function ops.after_restore is
  'Prepare a database that was restored to an earlier point. Run it before a worker starts. Messages that wait may have left after that point, so they count as handed over with an unknown outcome: a provider that can be asked is asked about each email first, marketing SMS fail instead of being sent twice, and everything else is sent, perhaps again. Returns how many messages that are.';
