create function ops.retry_message(message text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
declare
  v_message app.messages := core.find_message(message);
  v_job record;
begin
  if v_message.mode = 'test' then
    raise exception 'a test message is never sent';
  end if;
  perform core.lock_organisations(array[v_message.organisation_id]);
  select m.* into v_message from app.messages m where m.id = v_message.id for no key update;
  if v_message.status = 'failed' and v_message.sent_at is null then
    update app.messages m
    set status = 'queued', error_code = null, error_message = null
    where m.id = v_message.id;
    insert into app.events (message_id, type, occurred_at, detail)
    values (v_message.id, 'queued', core.now(), '{"text": "retried by the operator"}');
    update app.allowances a set messages_accepted = a.messages_accepted + 1
    where a.organisation_id = v_message.organisation_id;
  elsif v_message.status <> 'queued' then
    raise exception 'the message is %; only one that is queued, or failed before it was sent, can be retried', v_message.status;
  end if;

  delete from app.due_messages d where d.message_id = v_message.id;
  select j.* into v_job from core.job_of(v_message) j;
  if v_job.id is null then
    perform core.add_jobs(array[core.send_job(v_message.channel, v_message.id, 0)]);
  elsif v_job.locked_at is null then
    -- Due now, with all its attempts before it.
    perform graphile_worker.reschedule_jobs(array[v_job.id], run_at := now(), attempts := 0);
  end if;
end
$$;

comment on function ops.retry_message is
  'Hand a message over now: one that waits for its next attempt, or one that failed before it was sent. Its timeline goes on.';
