create function api.dashboard_frame(session text, organisation text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_session app.sessions := core.session_of(dashboard_frame.session);
  v_organisation uuid;
begin
  if dashboard_frame.organisation is not null then
    v_organisation := core.member_of(dashboard_frame.session, dashboard_frame.organisation);
  end if;
  return (
    select jsonb_build_object(
      'email', u.email,
      'isOperator', u.is_operator,
      'signedInAt', core.iso(v_session.signed_in_at),
      'organisations', coalesce((
        select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('org', o.id), 'name', o.name, 'role', m.role) order by lower(o.name), o.id)
        from app.members m
        join app.organisations o on o.id = m.organisation_id
        where m.user_id = u.id), '[]'),
      'organisation', (
        select jsonb_build_object(
          'id', core.encode_id('org', o.id),
          'name', o.name,
          'state', o.state,
          'reason', coalesce(o.suspension_reason, o.pause_reason),
          'role', coalesce(m.role, 'viewer'),
          'isViewed', m.role is null)
        from app.organisations o
        left join app.members m on m.organisation_id = o.id and m.user_id = u.id
        where o.id = v_organisation))
    from app.users u
    where u.id = v_session.user_id);
end
$$;

comment on function api.dashboard_frame is
  'Returns what every page of the dashboard shows: email, isOperator, signedInAt, organisations ({id, name, role}) of the user, and the organisation of the page ({id, name, state, reason, role, isViewed}; null without the argument). Refuses as core.member_of does.';
