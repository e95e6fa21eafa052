create function core.actor()
returns text
language sql stable
as $$
  -- As long as app.audit allows; an address may be longer.
  select left(case current_setting('role')
    when 'postgram_service' then coalesce(nullif(current_setting('postgram.user', true), ''), 'service')
    when 'none' then session_user
    else format('%s as %s', session_user, current_setting('role'))
  end, 200)
$$;

comment on function core.actor is
  'Returns who acts in this transaction: in the dashboard the user that core.session_of found, in psql the login and its role, else service.';
