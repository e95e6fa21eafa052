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
  v_ahead bigint;
  v_trouble text;
begin
  if message like 'evt\_%' then
    return core.why_event(core.find_webhook_event(message));
  end if;
  v_message := core.find_message(message);
  if v_message.mode = 'test' then
    return 'It does not wait: it was sent with a test key, and such messages never leave.';
  elsif v_message.status not in ('queued', 'scheduled') then
    return format('It does not wait: it is %s%s.', v_message.status,
      coalesce(' (' || rtrim(v_message.error_message, '.') || ')', ''));
  end if;

  select o.* into v_organisation from app.organisations o where o.id = v_message.organisation_id;
  if v_message.status = 'scheduled' and v_message.scheduled_at > core.now() then
    return core.why_scheduled(v_message, v_organisation);
  elsif v_organisation.state <> 'active' then
    return format('It waits because its organisation %s is %s since %s: %s; %s',
      core.encode_id('org', v_organisation.id), v_organisation.state, core.iso(core.state_since(v_organisation)),
      core.state_reason(v_organisation),
      case
        when v_organisation.state = 'suspended' then 'a worker is about to reject it.'
        when v_message.status = 'scheduled' then
          format('select ops.resume(…) sends it until %s, when it is rejected.', core.iso(core.late_at(v_message.scheduled_at)))
        else 'select ops.resume(…) sends it.'
      end);
  end if;

  select d.* into v_due from app.due_messages d where d.message_id = v_message.id;
  if not core.has_process('worker') then
    return format('It waits because no worker is running%s; start one with the command "start" or "start --only worker".',
      (select format(' (the last was seen at %s)', core.iso(max(p.heartbeat_at)))
       from app.processes p where 'worker' = any (p.roles) having count(*) > 0));
  end if;

  select h.* into v_failing from core.failing_providers() h where h.provider = v_message.provider;
  v_trouble := format('the provider %s takes nothing since %s: %s',
    v_failing.provider, core.iso(v_failing.failing_since), rtrim(v_failing.last_error, '.'));
  if v_failing.provider is null then
    select format('it was put off: %s',
      rtrim(coalesce(e.detail ->> 'text', e.detail ->> 'code', 'no reason given'), '.')) into v_trouble
    from app.events e
    where e.message_id = v_message.id and e.type = 'deferred'
    order by e.id desc
    limit 1;
  end if;
  select j.* into v_job from core.job_of(v_message) j;

  if v_due.message_id is not null and v_due.due_at is null then
    return 'It was held while its organisation was paused; the clock releases it within a minute.';
  elsif v_message.status = 'scheduled' and v_due.message_id is not null then
    return format(case when core.has_process('clock') then 'It fell due at %s; the clock releases it within a minute.'
      else 'It fell due at %s and waits because no clock is running; start one with the command "start" or "start --only clock".'
      end, core.iso(v_due.due_at));
  -- A job that gave up has a time for the attempt that it will not get.
  elsif v_due.message_id is null and v_job.attempts >= v_job.max_attempts and v_job.locked_at is null then
    return format('Its job gave up after %s attempts (%s); select ops.retry_message(…) sends it.', v_job.attempts, v_job.last_error);
  elsif v_due.message_id is not null or v_job.run_at > now() then
    return format('It waits for attempt %s at %s because %s.', v_message.attempts + 1,
      core.iso(coalesce(v_due.due_at, core.now() + (v_job.run_at - now()))), coalesce(v_trouble, 'it was put off'));
  elsif v_job.id is null then
    return format('It is %s but has no job, which should not be; select ops.retry_message(…) sends it.', v_message.status);
  elsif v_job.locked_at is not null then
    return format('It is being handed over since %s, attempt %s%s.', core.iso(v_job.locked_at), v_message.attempts,
      coalesce('; ' || v_trouble, ''));
  end if;

  select count(*) into v_ahead
  from (
    select from graphile_worker._private_jobs j
    -- Webhook deliveries have workers of their own.
    where j.is_available and j.run_at <= now() and j.task_id = v_job.task_id
      and (j.priority, j.run_at, j.id) < (v_job.priority, v_job.run_at, v_job.id)
    limit 100001
  ) ahead;
  return format('It waits its turn behind %s messages%s.',
    case when v_ahead > 100000 then 'more than 100 000' else v_ahead::text end, coalesce('; ' || v_trouble, ''));
end
$$;

comment on function ops.why is
  'Why a message waits, in one sentence. Given the id of a webhook event, evt_…, it says what happened to that, in a sentence for each endpoint.';
