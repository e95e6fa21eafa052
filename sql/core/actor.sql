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
  'Returns who makes the changes of this transaction: the user of the dashboard whom core.session_of found, "service", or the login with the role that it has taken.';
