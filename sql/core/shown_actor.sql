create function core.shown_actor(a app.audit, is_owner boolean)
returns text
language sql stable
as $$
  select case
    when a.actor = 'service' then a.actor
    when exists (
      select from app.users u
      join app.members m on m.user_id = u.id
      where u.email = a.actor and m.organisation_id = a.organisation_id) then a.actor
    -- In psql the actor is the login, with the role that it has taken.
    when a.actor = a.login or starts_with(a.actor, a.login || ' as ')
      or exists (select from app.users u where u.email = a.actor and u.is_operator) then 'operator'
    -- An owner answers for former members; nothing distinguishes those from former operators.
    when is_owner then a.actor
    else 'former user'
  end
$$;

comment on function core.shown_actor is
  'Returns what members of its organisation see as the actor of an audit row: "service", the address of a member, "operator" for operators of the service, or the address of a former user, which only owners see. Who the operators are concerns the service; ops.audit names them.';
