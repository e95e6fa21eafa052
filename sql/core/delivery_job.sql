create function core.delivery_job(endpoint app.webhook_endpoints, run_at timestamptz default null, is_deferred boolean default false)
returns graphile_worker.job_spec
language sql stable
as $$
  select (
    'deliver_webhook', json_build_object('endpoint', endpoint.id), null, run_at, null,
    case when is_deferred then 'deliver_webhook:' || endpoint.id end,
    -- Endpoints that respond come before those that fail.
    case when endpoint.failing_since is null then 0 else 10 end::smallint, null
  )::graphile_worker.job_spec
$$;

comment on function core.delivery_job is
  'The job that claims the lease of an endpoint and posts what is due there; run_at is the server''s real time. There may be several: those that find the lease taken end at once. Deferred jobs, which had no room for the endpoint, share a key, so that one waits however many events there are.';
