create function api.end_turns(turns jsonb)
returns integer
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  return 0;
end
$$;

comment on function api.end_turns is
  'Give up the turns of jobs, {endpoint_id, job}, so that others have theirs; what is due there gets a job behind theirs. Answers how many such jobs there are.';
