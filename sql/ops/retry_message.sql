create function ops.retry_message(message text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message app.messages := core.find_message(message);
  v_job record;
begin
  if v_message.mode = 'test' then
    raise exception 'a test message is never sent to a provider';
  end if;
  select m.* into v_message from app.messages m where m.id = v_message.id for no key update;
  if v_message.status = 'failed' and v_message.channel = 'sms' then
    raise exception 'a failed SMS cannot be retried, as it may have been refunded; send a new one';
  elsif v_message.status = 'scheduled' and v_message.scheduled_at > core.now() then
    raise exception 'the SMS is scheduled for % and cannot be sent earlier', core.iso(v_message.scheduled_at);
  elsif v_message.status = 'failed' and not exists (select from app.bodies b where b.message_id = v_message.id) then
    raise exception 'the body of the message has been deleted (ops.retention); send a new message';
  elsif v_message.status = 'failed' and v_message.sent_at is null then
    update app.messages m
    set status = 'queued', error_code = null, error_message = null
    where m.id = v_message.id;
    insert into app.events (message_id, type, occurred_at, detail)
    values (v_message.id, 'queued', core.now(), jsonb_build_object('text', case
      when current_setting('postgram.user', true) <> '' then 'retried in the dashboard'
      else 'retried by the operator'
    end));
    update app.allowances a set messages_accepted = a.messages_accepted + 1
    where a.organisation_id = v_message.organisation_id;
  elsif v_message.status not in ('queued', 'scheduled') then
    raise exception 'the message is %; only a waiting message, or an email that failed before it was sent, can be retried', v_message.status;
  end if;

  delete from app.due_messages d where d.message_id = v_message.id;
  select j.* into v_job from core.job_of(v_message) j;
  if v_job.id is null then
    perform core.add_jobs(array[core.send_job(v_message.channel, v_message.id, 0)]);
  elsif v_job.locked_at is null then
    -- Due now, with the full number of attempts.
    perform graphile_worker.reschedule_jobs(array[v_job.id], run_at := now(), attempts := 0);
  end if;
  perform core.audit('retry_message', v_message.organisation_id,
    core.message_id(v_message.channel, v_message.id),
    jsonb_build_object('status', v_message.status, 'error_code', v_message.error_code),
    jsonb_build_object('status', coalesce(nullif(v_message.status, 'failed'), 'queued'), 'due', 'now'));
end
$$;

comment on function ops.retry_message is
  'Attempt to send a message now. The message must be waiting for an attempt, or be an email that failed before a provider accepted it. Raises an error for any other message.';
