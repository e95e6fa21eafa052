create function core.enqueue_forgetting(organisations uuid[])
returns integer
language sql volatile
as $$
  select core.add_jobs(array_agg((
    'forget_suppression', json_build_object('organisation', o.id), null, null, null, 'forget_suppression:' || o.id, 100::smallint, null
  )::graphile_worker.job_spec order by o.id))
  from unnest(organisations) o (id)
$$;

comment on function core.enqueue_forgetting is
  'Enqueue one job for each of these organisations that has the provider forget suppressions. Answers how many.';
