create function api.finish_notice(result jsonb)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with finished as (
    update app.notices n
    set
      sent_at = case r.outcome when 'sent' then core.now() end,
      failed_at = case r.outcome when 'failed' then core.now() end,
      -- A token that was sent needs no copy.
      detail = case when r.outcome in ('sent', 'failed') then n.detail - 'sealedToken' else n.detail end,
      attempt_started_at = case r.outcome
        when 'ambiguous' then coalesce(r.ambiguous_since, n.attempt_started_at) end,
      error_message = case when r.outcome <> 'sent' then coalesce(r.text, r.code, 'no reason given') end
    from jsonb_populate_record(null::core.notice_result, result) as r
    where n.id = r.id and n.sent_at is null and n.failed_at is null
    returning n.sent_at is not null or n.failed_at is not null as is_settled
  )
  select coalesce((select f.is_settled from finished f), true)
$$;

comment on function api.finish_notice is
  'Record the outcome of an attempt to send a notice. Returns whether the notice is settled; otherwise it has to be attempted again.';
