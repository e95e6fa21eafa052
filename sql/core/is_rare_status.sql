create function core.is_rare_status(status text)
returns boolean
language sql immutable
as $$
  select status in ('bounced', 'complained', 'failed', 'expired', 'rejected')
$$;

comment on function core.is_rare_status is
  'Returns whether few messages have a status and they keep it: such statuses are indexed at once. Others are indexed after a day, when few messages change any more.';
