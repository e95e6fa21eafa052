create function core.delivery_jobs(ids uuid[])
returns graphile_worker.job_spec[]
language plpgsql stable
as $$
declare
  -- Few, so that the endpoints of a job, whose posts run side by side, wait little for a slow one among them.
  v_in_one_job constant integer := 8;
begin
  return array(
    select case count(*)
      when 1 then core.delivery_job((array_agg(g.endpoint))[1])
      else (
        'deliver_webhooks', json_build_object('endpoints', array_agg((g.endpoint).id)), null, null, null, null,
        0::smallint, null
      )::graphile_worker.job_spec
    end
    from (
      select p as endpoint, p.failing_since is not null as is_failing,
        (row_number() over (partition by p.failing_since is not null order by p.id) - 1)
          / case when p.failing_since is null then v_in_one_job else 1 end as job
      from app.webhook_endpoints p
      where p.id = any (ids)
    ) g
    group by g.is_failing, g.job);
end
$$;

comment on function core.delivery_jobs is
  'Returns jobs that post what is due at these endpoints: one for up to 8 endpoints, because a job costs about as much as an event, and one for each endpoint that fails (core.delivery_job). A process from before the task deliver_webhooks takes only jobs of one endpoint; api.enqueue_due_deliveries adds those after a minute.';
