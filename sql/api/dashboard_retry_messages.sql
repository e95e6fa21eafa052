create function api.dashboard_retry_messages(session text, organisation text, messages text[])
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_retry_messages.session, dashboard_retry_messages.organisation, 'member');
  v_ids uuid[];
  v_message text;
  v_problems jsonb := '[]';
begin
  v_ids := array(select (core.message_of(v_organisation, x.message)).id from unnest(messages) x (message));
  -- All of them before ops.retry_message locks the allowance (ARCHITECTURE.md, lock order).
  perform m.id from app.messages m where m.id = any (v_ids) order by m.id for no key update;
  for v_message in select distinct x.message from unnest(messages) x (message) loop
    begin
      perform ops.retry_message(v_message);
    exception when raise_exception then
      v_problems := v_problems || jsonb_build_object('id', v_message, 'problem', sqlerrm);
    end;
  end loop;
  return v_problems;
end
$$;

comment on function api.dashboard_retry_messages is
  'Retry messages of the organisation as ops.retry_message does, for a member. Returns those that cannot be retried: [{id, problem}]. Refuses as core.member_of does, and with not_found for another ID.';
