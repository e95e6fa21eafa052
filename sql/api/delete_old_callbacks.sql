create function api.delete_old_callbacks()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with forgotten as (
    delete from app.callback_tokens t
    where t.token in (
      select o.token
      from app.callback_tokens o
      -- One hour after core.is_timely() begins to refuse them.
      where o.signed_at < core.now() - interval '9 hours'
      order by o.signed_at
      limit 20000
    )
    returning 1
  )
  select count(*)::integer from forgotten
$$;

comment on function api.delete_old_callbacks is
  'Delete the tokens of callbacks that are too old to be accepted again. Returns the number of tokens, at most 20,000.';
