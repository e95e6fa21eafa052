create function core.delivery_job(endpoint app.webhook_endpoints, run_at timestamptz default null, is_deferred boolean default false)
returns graphile_worker.job_spec
language sql stable
as $$
  select (
    'deliver_webhook', json_build_object('endpoint', endpoint.id), null, run_at, null,
    case when is_deferred then 'deliver_webhook:' || endpoint.id end,
    -- Endpoints that respond come before failing ones, which occupy a worker until they time out.
    case when endpoint.failing_since is null then 0 else 10 end::smallint, null
  )::graphile_worker.job_spec
$$;

comment on function core.delivery_job is
  'Returns the job that claims an endpoint''s lease and posts its due deliveries. run_at is the server''s real time. Several jobs may exist for an endpoint; one that finds the lease taken ends immediately. Deferred jobs share a key, so at most one of them waits for an endpoint.';
