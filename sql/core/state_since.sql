create function core.state_since(o app.organisations)
returns timestamptz
language sql immutable
as $$
  select case o.state when 'suspended' then o.suspended_at when 'paused' then o.paused_at else o.activated_at end
$$;

comment on function core.state_since is
  'Returns when the current pause or suspension of an organisation began; for an active one, when it became active.';
