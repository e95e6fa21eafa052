create function core.why_message(m app.messages, at_most_jobs bigint default null, out reason text, out advice text)
language plpgsql stable
as $$
declare
  v_organisation app.organisations;
  v_due app.due_messages;
  v_job graphile_worker._private_jobs;
  v_failing app.provider_health;
  v_at_most constant bigint := coalesce(at_most_jobs, 100000);
  v_more constant text := format('more than %s messages', ltrim(to_char(v_at_most, 'FM999 999 999')));
  v_messages_before bigint;
  v_cause text;
begin
  if m.mode = 'test' then
    reason := 'The message does not wait: it was created with a test key and is never sent to a provider';
    return;
  elsif m.status not in ('queued', 'scheduled') then
    reason := format('The message does not wait: its status is %s%s', m.status,
      coalesce(' (' || rtrim(m.error_message, '.') || ')', ''));
    return;
  end if;

  select o.* into v_organisation from app.organisations o where o.id = m.organisation_id;
  if m.status = 'scheduled' and m.scheduled_at > core.now() then
    reason := rtrim(core.why_scheduled(m, v_organisation), '.');
    return;
  elsif v_organisation.state <> 'active' then
    reason := format('The message waits because its organisation %s has been %s since %s: %s%s',
      core.encode_id('org', v_organisation.id), v_organisation.state, core.iso(core.state_since(v_organisation)),
      core.state_reason(v_organisation),
      case when v_organisation.state = 'suspended' then '; a worker will reject it' end);
    advice := case
      when v_organisation.state = 'suspended' then null
      when m.status = 'scheduled' then
        format('; select ops.resume(…) sends it until %s; after that it is rejected', core.iso(core.late_at(m.scheduled_at)))
      else '; select ops.resume(…) sends it'
    end;
    return;
  end if;

  select d.* into v_due from app.due_messages d where d.message_id = m.id;
  if not core.has_process('worker') then
    reason := 'The message waits because no worker is running';
    advice := format('%s; start one with the command "start" or "start --only worker"',
      (select format(' (last heartbeat at %s)', core.iso(max(p.heartbeat_at)))
       from app.processes p where 'worker' = any (p.roles) having count(*) > 0));
    return;
  end if;

  select h.* into v_failing from core.failing_providers() h where h.provider = m.provider;
  if v_failing.provider is not null then
    v_cause := format('the provider %s has accepted no messages since %s', v_failing.provider, core.iso(v_failing.failing_since));
    -- The provider's text may be about a message of another organisation.
    advice := ': ' || rtrim(v_failing.last_error, '.');
  elsif m.class = 'marketing' and core.are_lists_behind() then
    v_cause := 'marketing waits until the lists of all cells are up to date';
    advice := ': select * from ops.cells';
  else
    select format('the last attempt was deferred: %s',
      rtrim(coalesce(e.detail ->> 'text', e.detail ->> 'code', 'no reason given'), '.')) into v_cause
    from app.events e
    where e.message_id = m.id and e.type = 'deferred'
    order by e.id desc
    limit 1;
  end if;
  select j.* into v_job from core.job_of(m, at_most_jobs) j;

  if v_due.message_id is not null and v_due.due_at is null then
    reason := 'The message was held while its organisation was paused; the clock releases it within a minute';
    advice := null;
  elsif m.status = 'scheduled' and v_due.message_id is not null then
    reason := format(case when core.has_process('clock') then 'The message has been due since %s; the clock releases it within a minute'
      else 'The message has been due since %s and waits because no clock is running' end, core.iso(v_due.due_at));
    advice := case when not core.has_process('clock') then '; start one with the command "start" or "start --only clock"' end;
  -- Checked before the next attempt: a job that failed permanently still has a run_at.
  elsif v_due.message_id is null and v_job.attempts >= v_job.max_attempts and v_job.locked_at is null then
    reason := format('The job of the message failed permanently after %s', core.counted(v_job.attempts, 'attempt'));
    advice := format(' (%s); select ops.retry_message(…) sends the message', v_job.last_error);
  elsif v_due.message_id is not null or v_job.run_at > now() then
    reason := format('The message waits for attempt %s at %s because %s', m.attempts + 1,
      core.iso(coalesce(v_due.due_at, core.now() + (v_job.run_at - now()))), coalesce(v_cause, 'it was deferred'));
  elsif v_job.id is null and at_most_jobs is not null and exists (select from graphile_worker._private_jobs j offset v_at_most limit 1) then
    reason := format('The message waits in a queue of %s%s', v_more, coalesce('; ' || v_cause, ''));
  elsif v_job.id is null then
    reason := format('The message is %s but has no job; this is a bug, please report it', m.status);
    advice := '. select ops.retry_message(…) sends the message';
  elsif v_job.locked_at is not null then
    reason := format('Attempt %s of the message has been running since %s%s', m.attempts, core.iso(v_job.locked_at),
      coalesce('; ' || v_cause, ''));
  else
    select coalesce(sum(core.job_size(earlier.payload)), 0) into v_messages_before
    from (
      select j.payload from graphile_worker._private_jobs j
      -- Only jobs of the same channel: webhook deliveries have their own workers.
      where j.is_available and j.run_at <= now() and j.task_id = any (array(
          select t.id from graphile_worker._private_tasks t where t.identifier = any (core.send_tasks(m.channel))))
        and (j.priority, j.run_at, j.id) < (v_job.priority, v_job.run_at, v_job.id)
      limit v_at_most + 1
    ) earlier;
    reason := format('The message waits behind %s%s',
      case when v_messages_before > v_at_most then v_more else core.counted(v_messages_before, 'message') end,
      coalesce('; ' || v_cause, ''));
  end if;
end
$$;

comment on function core.why_message is
  'Returns why a message waits, without a period: reason for everyone, and advice, which continues it, for operators; null if there is none. at_most_jobs bounds the search for its job and the count of those before it; null: all are searched, 100 000 counted.';
