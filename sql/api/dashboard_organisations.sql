create function api.dashboard_organisations(session text, search text, after text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before uuid := core.decode_id('org', dashboard_organisations.after);
begin
  perform core.operator_of(dashboard_organisations.session);
  return (
    select coalesce(jsonb_agg(to_jsonb(o) order by o.id desc), '[]')
    from (
      select v.*
      from ops.organisations v
      where (dashboard_organisations.search = ''
          or strpos(lower(v.name || ' ' || v.owner_email || ' ' || v.id), lower(dashboard_organisations.search)) > 0)
        and (v_before is null or v.id < dashboard_organisations.after)
      order by v.id desc
      limit core.page_rows() + 1
    ) o);
end
$$;

comment on function api.dashboard_organisations is
  'Returns a page of the rows of ops.organisations and one more (core.page_rows), newest first, whose name, owner or ID contains the search, with IDs lower than after (empty: all). Refuses as core.operator_of does.';
