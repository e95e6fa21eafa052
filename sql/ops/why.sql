create function ops.why(message text)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message app.messages;
  v_organisation app.organisations;
  v_due app.due_messages;
  v_job graphile_worker._private_jobs;
  v_failing app.provider_health;
  v_jobs_before bigint;
  v_cause text;
begin
  if message like 'evt\_%' then
    return core.why_event(core.find_webhook_event(message));
  end if;
  v_message := core.find_message(message);
  if v_message.mode = 'test' then
    return 'The message does not wait: it was created with a test key and is never sent to a provider.';
  elsif v_message.status not in ('queued', 'scheduled') then
    return format('The message does not wait: its status is %s%s.', v_message.status,
      coalesce(' (' || rtrim(v_message.error_message, '.') || ')', ''));
  end if;

  select o.* into v_organisation from app.organisations o where o.id = v_message.organisation_id;
  if v_message.status = 'scheduled' and v_message.scheduled_at > core.now() then
    return core.why_scheduled(v_message, v_organisation);
  elsif v_organisation.state <> 'active' then
    return format('The message waits because its organisation %s has been %s since %s: %s; %s',
      core.encode_id('org', v_organisation.id), v_organisation.state, core.iso(core.state_since(v_organisation)),
      core.state_reason(v_organisation),
      case
        when v_organisation.state = 'suspended' then 'a worker will reject it.'
        when v_message.status = 'scheduled' then
          format('select ops.resume(…) sends it until %s; after that it is rejected.', core.iso(core.late_at(v_message.scheduled_at)))
        else 'select ops.resume(…) sends it.'
      end);
  end if;

  select d.* into v_due from app.due_messages d where d.message_id = v_message.id;
  if not core.has_process('worker') then
    return format('The message waits because no worker is running%s; start one with the command "start" or "start --only worker".',
      (select format(' (last heartbeat at %s)', core.iso(max(p.heartbeat_at)))
       from app.processes p where 'worker' = any (p.roles) having count(*) > 0));
  end if;

  select h.* into v_failing from core.failing_providers() h where h.provider = v_message.provider;
  v_cause := format('the provider %s has accepted no messages since %s: %s',
    v_failing.provider, core.iso(v_failing.failing_since), rtrim(v_failing.last_error, '.'));
  if v_failing.provider is null then
    select format('the last attempt was deferred: %s',
      rtrim(coalesce(e.detail ->> 'text', e.detail ->> 'code', 'no reason given'), '.')) into v_cause
    from app.events e
    where e.message_id = v_message.id and e.type = 'deferred'
    order by e.id desc
    limit 1;
  end if;
  select j.* into v_job from core.job_of(v_message) j;

  if v_due.message_id is not null and v_due.due_at is null then
    return 'The message was held while its organisation was paused; the clock releases it within a minute.';
  elsif v_message.status = 'scheduled' and v_due.message_id is not null then
    return format(case when core.has_process('clock') then 'The message has been due since %s; the clock releases it within a minute.'
      else 'The message has been due since %s and waits because no clock is running; start one with the command "start" or "start --only clock".'
      end, core.iso(v_due.due_at));
  -- Checked before the next attempt: a job that failed permanently still has a run_at.
  elsif v_due.message_id is null and v_job.attempts >= v_job.max_attempts and v_job.locked_at is null then
    return format('The job of the message failed permanently after %s (%s); select ops.retry_message(…) sends the message.',
      core.counted(v_job.attempts, 'attempt'), v_job.last_error);
  elsif v_due.message_id is not null or v_job.run_at > now() then
    return format('The message waits for attempt %s at %s because %s.', v_message.attempts + 1,
      core.iso(coalesce(v_due.due_at, core.now() + (v_job.run_at - now()))), coalesce(v_cause, 'it was deferred'));
  elsif v_job.id is null then
    return format('The message is %s but has no job; this is a bug, please report it. select ops.retry_message(…) sends the message.',
      v_message.status);
  elsif v_job.locked_at is not null then
    return format('Attempt %s of the message has been running since %s%s.', v_message.attempts, core.iso(v_job.locked_at),
      coalesce('; ' || v_cause, ''));
  end if;

  select count(*) into v_jobs_before
  from (
    select from graphile_worker._private_jobs j
    -- Only jobs of the same task: webhook deliveries have their own workers.
    where j.is_available and j.run_at <= now() and j.task_id = v_job.task_id
      and (j.priority, j.run_at, j.id) < (v_job.priority, v_job.run_at, v_job.id)
    limit 100001
  ) earlier;
  return format('The message waits behind %s%s.',
    case when v_jobs_before > 100000 then 'more than 100 000 messages' else core.counted(v_jobs_before, 'message') end,
    coalesce('; ' || v_cause, ''));
end
$$;

comment on function ops.why is
  'Return the reason why a message waits, in one sentence. For the ID of a webhook event, evt_…, returns one sentence for each endpoint: whether it was delivered there, and if not, why.';
