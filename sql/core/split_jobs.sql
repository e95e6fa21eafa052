create function core.split_jobs(at_most integer)
returns integer
language plpgsql volatile
as $$
declare
  v_channel app.channel;
  v_count integer := 0;
  v_jobs graphile_worker.job_spec[];
begin
  foreach v_channel in array enum_range(null::app.channel) loop
    continue when core.takes_several(v_channel);
    with split as (
      delete from graphile_worker._private_jobs j
      where j.id in (
        select w.id
        from graphile_worker._private_jobs w
        join graphile_worker._private_tasks t on t.id = w.task_id
        where t.identifier = (core.send_tasks(v_channel))[2] and w.is_available
        limit split_jobs.at_most
        for update of w skip locked)
      returning j.payload, j.priority, j.run_at
    )
    select array_agg(core.send_job(v_channel, i.id::uuid, s.priority, s.run_at)) into v_jobs
    from split s
    cross join lateral json_array_elements_text(s.payload) as i (id);
    v_count := v_count + core.add_jobs(v_jobs);
  end loop;
  return v_count;
end
$$;

comment on function core.split_jobs is
  'Replace jobs of several messages by jobs of one message if no worker takes the former, as after an upgrade that was reverted. Returns the number of messages.';
