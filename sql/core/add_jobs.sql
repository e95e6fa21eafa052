create function core.add_jobs(jobs graphile_worker.job_spec[], keeps_time boolean default false)
returns integer
language plpgsql volatile
as $$
begin
  if jobs is null then
    return 0;
  end if;
  return (select count(*) from graphile_worker.add_jobs(jobs, keeps_time));
end
$$;

comment on function core.add_jobs is
  'Enqueue jobs, with one NOTIFY for all of them. Does nothing for null. A job replaces a waiting job with the same key; with keeps_time it keeps that job''s run_at. Returns the number of jobs.';
