create function core.forget_at_provider(email text, organisations uuid[])
returns integer
language sql volatile
as $$
  select core.add_jobs(array_agg((
    'forget_suppression', json_build_object('email', email, 'domains', b.domains),
    null, null, null, null, null, null
  )::graphile_worker.job_spec))
  from (
    select json_agg(d.name order by d.name) as domains
    from (
      select d.name, (row_number() over (order by d.name) - 1) / 20 as batch
      from app.domains d
      where d.organisation_id = any (organisations)
    ) d
    group by d.batch
  ) b
$$;

comment on function core.forget_at_provider is
  'Have the provider''s own suppression of an address removed from the domains of these organisations, a job for each 20; answers how many jobs.';
