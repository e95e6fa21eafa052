create function api.dashboard_message_versions(sessions text[], organisations text[], messages text[])
returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
  -- Not by core.member_of: a session that only watches ends, and one that has ended does not refuse the others.
  return (
    select jsonb_agg(
      case when m.id is not null and core.role_of(core.valid_session(w.session), w.organisation_id) is not null
        then jsonb_build_object('version', core.message_version(m), 'mayChange', core.may_change(m)) end
      order by w.place)
    from (
      select w.session, w.message, w.place, core.decode_id('org', w.organisation) as organisation_id,
        coalesce(core.decode_id('em', w.message), core.decode_id('sm', w.message)) as message_id
      from unnest(sessions, organisations, messages) with ordinality w (session, organisation, message, place)
    ) w
    left join app.messages m on m.id = w.message_id and m.organisation_id = w.organisation_id
      and core.message_id(m.channel, m.id) = w.message);
end
$$;

comment on function api.dashboard_message_versions is
  'Returns for each watched message, in order, {version, mayChange}; null if its session has ended or may not see it.';
