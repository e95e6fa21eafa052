create function api.enqueue_due_deliveries()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_now timestamptz := core.now();
  v_overdue uuid[];
begin
  v_overdue := array(
    select e.id
    from app.webhook_endpoints e
    where e.disabled_at is null
      and exists (select from app.webhook_deliveries d where d.endpoint_id = e.id and d.due_at <= v_now)
      -- The job that has the lease delivers it, or enqueues a job for it when it releases the lease.
      and not exists (
        select from graphile_worker._private_jobs h where h.id = e.lease_job_id and h.locked_at is not null));
  if v_overdue <> '{}' then
    -- Leave out endpoints whose jobs still wait for a worker. This scans the jobs, once a minute at most.
    v_overdue := array(
      select unnest(v_overdue)
      except
      select (j.payload ->> 'endpoint')::uuid
      from graphile_worker._private_jobs j
      join graphile_worker._private_tasks t on t.id = j.task_id
      where t.identifier = 'deliver_webhook' and j.is_available and j.run_at <= now()
      except
      select e.endpoint::uuid
      from graphile_worker._private_jobs j
      join graphile_worker._private_tasks t on t.id = j.task_id
      cross join lateral json_array_elements_text(j.payload -> 'endpoints') e (endpoint)
      where t.identifier = 'deliver_webhooks' and j.is_available and j.run_at <= now()
        and j.created_at > now() - interval '1 minute');
  end if;

  return core.add_jobs((
    select array_agg(core.delivery_job(e, now() + (r.at - v_now)))
    from app.webhook_endpoints e
    cross join lateral (
      select v_now as at where e.id = any (v_overdue)
      union all
      (
        select max(d.due_at)
        from (
          select d.due_at from app.webhook_deliveries d
          where d.endpoint_id = e.id and d.due_at > v_now and d.due_at <= v_now + interval '90 seconds'
          order by d.due_at
          limit 1000
        ) d
        group by date_trunc('second', d.due_at)
        -- An endpoint with more seconds than that keeps its lease: each batch leads to the next.
        order by 1
        limit 30
      )
    ) r
    where e.disabled_at is null));
end
$$;

comment on function api.enqueue_due_deliveries is
  'Enqueue a job for each endpoint and second at which something is to be delivered within the next 90 seconds, the first 30 of each, and one for each endpoint where something is overdue and no job will deliver it. Returns how many. A superfluous job finds nothing to do.';
