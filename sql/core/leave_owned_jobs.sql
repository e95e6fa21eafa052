create function core.leave_owned_jobs(organisation_ids uuid[])
returns integer
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  v_count integer;
begin
  with named as materialized (
    select j.id as job_id, t.identifier as task, i.id::uuid as id, i.place
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    cross join lateral json_array_elements_text(
      case
        when json_typeof(j.payload) = 'array' then j.payload
        else coalesce(j.payload -> 'ids', j.payload -> 'endpoints', json_build_array(
          coalesce(j.payload ->> 'id', j.payload ->> 'endpoint', j.payload ->> 'organisation')))
      end) with ordinality as i (id, place)
    where t.identifier = any (array[
      'send_email', 'send_emails', 'send_sms', 'send_sms_messages', 'poll_receipts', 'deliver_webhook', 'deliver_webhooks',
      'notify_owner', 'notify_user', 'remove_suppression', 'check_domain', 'release_domain', 'rotate_dkim'])
  ),
  owned as materialized (
    select n.*, case
        when n.task like 'send\_%' or n.task = 'poll_receipts' then (
          select m.organisation_id from app.messages m where m.id = n.id limit 1)
        when n.task like 'deliver\_%' then (select p.organisation_id from app.webhook_endpoints p where p.id = n.id)
        when n.task like 'notify\_%' then (select o.organisation_id from app.notices o where o.id = n.id)
        when n.task = 'remove_suppression' then n.id
        else (select d.organisation_id from app.domains d where d.id = n.id)
      end = any (organisation_ids) as is_theirs
    from named n
  ),
  changed as materialized (
    select o.job_id, json_agg(o.id order by o.place) filter (where o.is_theirs is not true) as kept
    from owned o
    group by o.job_id
    having bool_or(o.is_theirs)
  ),
  shortened as (
    update graphile_worker._private_jobs j
    set payload = case
        when json_typeof(j.payload) = 'array' then c.kept
        when j.payload -> 'ids' is not null then json_build_object('ids', c.kept)
        else json_build_object('endpoints', c.kept)
      end
    from changed c
    where j.id = c.job_id and c.kept is not null
  ),
  ended as (
    delete from graphile_worker._private_jobs j using changed c where j.id = c.job_id and c.kept is null
  )
  select count(*) into v_count
  from owned o
  where o.is_theirs and o.task like 'send\_%';
  return v_count;
end
$$;

comment on function core.leave_owned_jobs is
  'Take everything of these organisations out of the jobs: their messages, endpoints, notices, addresses and domains. Jobs without anything else are deleted. Returns the number of messages. No process is running.';
