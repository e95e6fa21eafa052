create function ops.after_restore()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer;
begin
  if core.has_process('worker') then
    raise exception 'a worker is running; stop all workers first, as they may send the messages meanwhile';
  end if;
  with waiting as (
    select j.message_id as id
    from core.message_jobs() j
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
  'Prepare a database that was restored to an earlier point in time. Run it before a worker starts. Waiting messages may have been sent after that point, so they count as attempted with an unknown outcome. For each email the worker first asks a provider that can be asked; marketing SMS fail instead of being sent twice; every other message is sent, perhaps a second time. Returns the number of these messages. Raises an error while a worker is running.';
