create function core.state_reason(o app.organisations)
returns text
language sql immutable
as $$
  select case o.state when 'suspended' then o.suspension_reason when 'paused' then o.pause_reason end
$$;

comment on function core.state_reason is
  'Returns the reason for the current pause or suspension of an organisation; null for an active one.';
