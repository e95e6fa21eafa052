create function core.enqueue_suppression_removals(organisations uuid[])
returns void
language sql volatile
as $$
  select core.add_jobs(array_agg((
    'remove_suppression', json_build_object('organisation', o.id), null, null, null, 'remove_suppression:' || o.id, 100::smallint, null
  )::graphile_worker.job_spec order by o.id))
  from unnest(organisations) o (id)
$$;

comment on function core.enqueue_suppression_removals is
  'Enqueue one job for each of these organisations that removes addresses from the provider''s suppression list.';
