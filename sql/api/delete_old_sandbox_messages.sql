create function api.delete_old_sandbox_messages()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.sandbox_batches b
    where b.taken_at < now() - interval '7 days'
    returning cardinality(b.message_ids) as messages
  )
  select coalesce(sum(f.messages), 0)::integer from forgotten f
$$;

comment on function api.delete_old_sandbox_messages is
  'Forget messages that the sandbox network took more than a week ago. Returns their number.';
