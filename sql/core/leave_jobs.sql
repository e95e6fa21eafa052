create function core.leave_jobs(message_ids uuid[], job_ids bigint[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  -- In one order: two calls may be about the same jobs of several messages.
  perform from graphile_worker._private_jobs j where j.id = any (job_ids) order by j.id for update;
  update graphile_worker._private_jobs j
  set payload = to_json(array(
    select i.id
    from json_array_elements_text(j.payload) with ordinality as i (id, place)
    where i.id <> all (message_ids::text[])
    order by i.place))
  where j.id = any (job_ids) and json_typeof(j.payload) = 'array';
  delete from graphile_worker._private_jobs j
  where j.id = any (job_ids) and (json_typeof(j.payload) <> 'array' or json_array_length(j.payload) = 0);
end
$$;

comment on function core.leave_jobs is
  'Take messages out of the jobs that attempt them now, because something else attempts them later; jobs without a further message are deleted. The worker completes these jobs in a moment. If it crashed first, a job that still named a message would run beside the later attempt.';
