create function api.start_deliveries(turns jsonb)
returns setof api.delivery
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  return;
end
$$;

comment on function api.start_deliveries is
  'What is to be posted next: turns are {endpoint_id, job, in_hand (events that this job is posting), room}. The first job that asks has the endpoint''s turn; another gets nothing. A job that gets nothing and has nothing in hand has given its turn up.';
