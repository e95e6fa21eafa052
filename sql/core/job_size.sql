create function core.job_size(payload json)
returns integer
language sql immutable
as $$
  select case json_typeof(payload) when 'array' then json_array_length(payload) else 1 end
$$;

comment on function core.job_size is 'Returns the number of messages of a job; 1 for jobs of other tasks.';
