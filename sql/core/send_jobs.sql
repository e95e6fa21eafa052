create function core.send_jobs(channel app.channel, messages core.message_to_enqueue[])
returns graphile_worker.job_spec[]
language plpgsql stable
as $$
declare
  -- Few, because a worker takes a job as a whole: the messages of the jobs that it has fetched are lost to other
  -- workers, and come before a message of higher priority.
  v_in_one_job constant integer := 8;
  v_task constant text := (core.send_tasks(send_jobs.channel))[2];
begin
  if cardinality(messages) < 2 or not core.takes_several(send_jobs.channel) then
    return array(
      select core.send_job(send_jobs.channel, m.message_id, m.priority, m.run_at)
      from unnest(messages) m);
  end if;
  return array(
    select case count(*)
      when 1 then core.send_job(send_jobs.channel, (array_agg(g.message_id))[1], g.priority, g.run_at)
      else (
        v_task, to_json(array_agg(g.message_id order by g.place)), null, g.run_at, null, null,
        least(32767, g.priority)::smallint, null
      )::graphile_worker.job_spec
    end
    from (
      select m.message_id, m.priority, m.run_at, m.ordinality as place,
        (row_number() over (partition by m.priority, m.run_at order by m.ordinality) - 1) / v_in_one_job as part
      from unnest(messages) with ordinality m
    ) g
    group by g.priority, g.run_at, g.part
    order by min(g.place));
end
$$;

comment on function core.send_jobs is
  'Returns the jobs that attempt to send these messages: one for up to 8 of the same priority and time, because a job costs almost as much as a message. The payload of such a job is the array of their ids.';
