create function core.state_reason(o app.organisations)
returns text
language sql immutable
as $$
  select case o.state when 'suspended' then o.suspension_reason when 'paused' then o.pause_reason end
$$;

comment on function core.state_reason is 'The reason for the pause or suspension that an organisation''s state shows; null for an active one.';
