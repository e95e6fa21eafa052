create function api.dashboard_retry_messages(session text, organisation text, messages text[])
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_retry_messages.session, dashboard_retry_messages.organisation, 'member');
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', core.message_id(m.channel, m.id), 'problem', r.problem)), '[]')
    from core.retry_messages(array(
      select (core.message_of(v_organisation, x.message)).id from unnest(messages) x (message))) r
    join app.messages m on m.id = r.message_id);
end
$$;

comment on function api.dashboard_retry_messages is
  'Retry messages of the organisation as ops.retry_message does, for a member. Returns those that cannot be retried: [{id, problem}]. Refuses as core.member_of does, and with not_found for another ID.';
