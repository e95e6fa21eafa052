create function api.dashboard_team(
  session text, organisation text,
  members_after text default '', sessions_before text default null, audit_before text default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_team.session, dashboard_team.organisation);
  v_session app.sessions := core.session_of(dashboard_team.session);
  v_is_owner boolean := exists (
    select from app.members m
    where m.organisation_id = v_organisation and m.user_id = v_session.user_id and m.role = 'owner');
begin
  return jsonb_build_object(
    'members', coalesce((
      select jsonb_agg(jsonb_build_object('email', m.email, 'role', m.role, 'since', core.iso(m.created_at)) order by m.email)
      from (
        select u.email, x.role, x.created_at
        from app.members x
        join app.users u on u.id = x.user_id
        where x.organisation_id = v_organisation and u.email > dashboard_team.members_after
        order by u.email
        limit core.page_rows() + 1
      ) m), '[]'),
    'sessions', coalesce((
      select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('ses', s.id), 'email', s.email, 'client', s.client,
          'signedInAt', core.iso(s.signed_in_at), 'seenAt', core.iso(s.seen_at),
          'isCurrent', s.id = v_session.id, 'isOwn', s.user_id = v_session.user_id)
        order by s.id desc)
      from (
        select x.*, u.email
        from app.sessions x
        join app.users u on u.id = x.user_id
        where x.user_id in (
            select v_session.user_id
            union all
            select m.user_id
            from app.members m
            where v_is_owner and m.organisation_id = v_organisation and core.belongs_only_to(m.user_id, v_organisation))
          and x.seen_at > core.now() - interval '12 hours' and x.signed_in_at > core.now() - interval '30 days'
          and (dashboard_team.sessions_before is null or x.id < core.decode_id('ses', dashboard_team.sessions_before))
        order by x.id desc
        limit core.page_rows() + 1
      ) s), '[]'),
    'audit', coalesce((
      select jsonb_agg(jsonb_build_object(
          'id', a.id::text, 'at', core.iso(a.at), 'actor', a.shown_actor, 'action', a.action,
          'target', case when a.target = a.actor then a.shown_actor else a.target end,
          'before', a.before, 'after', a.after)
        order by a.id desc)
      from (
        select x.*, core.shown_actor(x, v_is_owner) from app.audit x
        where x.organisation_id = v_organisation
          and (dashboard_team.audit_before is null or x.id < dashboard_team.audit_before::bigint)
        order by x.id desc
        limit core.page_rows() + 1
      ) a), '[]'));
end
$$;

comment on function api.dashboard_team is
  'Returns what the Team page shows, of each list a page and one more (core.page_rows): members [{email, role, since}] after an address; sessions [{id, email, client, signedInAt, seenAt, isCurrent, isOwn}] before an ID (null: all), newest first: the user''s own, and for an owner those of the members who belong to no other organisation; audit [{id, at, actor, action, target, before, after}] of the organisation before an ID (null: all), newest first, with actors as core.shown_actor returns them. Refuses as core.member_of does.';
