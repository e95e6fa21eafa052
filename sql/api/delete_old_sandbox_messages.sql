create function api.delete_old_sandbox_messages()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.sandbox_messages s
    where s.due_at is null and s.taken_at < now() - interval '7 days'
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_sandbox_messages is
  'Delete messages that the sandbox network received more than a week ago. Returns their number.';
