create function core.retry_messages(ids uuid[])
returns table (message_id uuid, problem text)
language plpgsql volatile
as $$
declare
  v_ids uuid[];
  v_job_ids bigint[];
begin
  -- Locks messages, then allowances, each in the order of their IDs.
  perform from app.messages m where m.id = any (ids) order by m.id for no key update;
  return query
  select m.id, core.retry_problem(m) from app.messages m where m.id = any (ids) and core.retry_problem(m) is not null;
  v_ids := array(select m.id from app.messages m where m.id = any (ids) and core.retry_problem(m) is null order by m.id);

  perform core.audit('retry_message', m.organisation_id, core.message_id(m.channel, m.id),
    jsonb_build_object('status', m.status, 'error_code', m.error_code),
    jsonb_build_object('status', coalesce(nullif(m.status, 'failed'), 'queued'), 'due', 'now'))
  from app.messages m
  where m.id = any (v_ids)
  order by m.id;

  perform core.lock_organisations(array(
    select m.organisation_id from app.messages m where m.id = any (v_ids) and m.status = 'failed'));
  with retried as (
    update app.messages m
    set status = 'queued', error_code = null, error_message = null
    where m.id = any (v_ids) and m.status = 'failed'
    returning m.id, m.organisation_id
  ),
  recorded as (
    insert into app.events (message_id, type, occurred_at, detail)
    select r.id, 'queued', core.now(), jsonb_build_object('text', case
      when current_setting('postgram.user', true) <> '' then 'retried in the dashboard'
      else 'retried by the operator'
    end)
    from retried r
  )
  update app.allowances a
  set messages_accepted = a.messages_accepted + r.messages
  from (select x.organisation_id, count(*) as messages from retried x group by x.organisation_id) r
  where a.organisation_id = r.organisation_id;

  delete from app.due_messages d where d.message_id = any (v_ids);
  -- One scan of the queue for all of them: an index would slow down every send.
  with job as materialized (
    select j.message_id, j.job_id, j.locked_at, j.is_available and j.run_at <= now() as is_waiting
    from core.message_jobs() j
    where j.message_id = any (v_ids)
  )
  select
    -- A job that waits for a worker keeps its place, which is also that of other messages.
    array(select distinct j.job_id from job j where j.locked_at is null and not j.is_waiting),
    array(select i.id from unnest(v_ids) i (id) where not exists (select from job j where j.message_id = i.id))
    into v_job_ids, v_ids;
  -- Due now, with the full number of attempts.
  perform graphile_worker.reschedule_jobs(v_job_ids, run_at := now(), attempts := 0);
  perform core.add_jobs(array(
    select core.send_job(m.channel, m.id, 0) from app.messages m where m.id = any (v_ids) order by m.id));
end
$$;

comment on function core.retry_messages is
  'Attempt to send messages now: those that wait for an attempt, and emails that failed before a provider accepted them. Returns the others, each with the problem.';
