create function api.dashboard_messages(
  session text, organisation text, filter jsonb, page_size integer, cursor text default null
)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_messages.session, dashboard_messages.organisation);
  v_page record;
begin
  select s.* into v_page
  from core.search_messages(v_organisation, jsonb_populate_record(null::core.message_filter, dashboard_messages.filter),
    dashboard_messages.page_size, core.decode_id('cur', dashboard_messages.cursor)) s;
  return (
    select jsonb_build_object(
      'messages', coalesce(
        jsonb_agg(core.message_object(m)::jsonb || jsonb_build_object('mode', m.mode) order by m.id desc), '[]'),
      'nextCursor', core.encode_id('cur', v_page.next_id),
      'searchedBackTo', core.iso(v_page.searched_back_to))
    from unnest(v_page.messages) m);
end
$$;

comment on function api.dashboard_messages is
  'Returns a page of the messages of an organisation that match a filter, newest first, from the cursor on: {messages: message objects with mode, nextCursor, searchedBackTo}. searchedBackTo is null unless the search ended early. Refuses as core.member_of does.';
