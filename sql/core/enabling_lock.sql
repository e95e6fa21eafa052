create function core.enabling_lock()
returns bigint
language sql immutable
as $$
  select hashtextextended('postgram enabling of endpoints', 0)
$$;

comment on function core.enabling_lock is
  'The advisory lock between an event that is only recorded, as an endpoint is disabled, and the enabling of that endpoint: who records such events shares it until commit, who enables has it alone. So one of the two sees the other.';
