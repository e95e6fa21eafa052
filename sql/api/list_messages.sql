create function api.list_messages(organisation_id uuid, filter jsonb, page_size integer, cursor text default null)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_page record;
begin
  select s.* into v_page
  from core.search_messages(list_messages.organisation_id, jsonb_populate_record(null::core.message_filter, filter),
    page_size, core.decode_id('cur', cursor)) s;
  return (
    select json_build_object(
      'data', coalesce(json_agg(core.message_object(m) order by m.id desc), '[]'),
      'nextCursor', core.encode_id('cur', v_page.next_id))
    from unnest(v_page.messages) m);
end
$$;

comment on function api.list_messages is
  'Returns a page of an organisation''s messages as JSON text, newest first, from the cursor on. Reads for at most 0.1 s, so a page with a nextCursor may be short or empty.';
