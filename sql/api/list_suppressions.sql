create function api.list_suppressions(
  organisation_id uuid, page_size integer, email text default null, cursor text default null
)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with page as (
    select s, row_number() over (order by s.id desc) as place
    -- One more than asked for tells whether there are more.
    from core.find_suppressions(organisation_id, email, core.decode_id('cur', cursor), page_size + 1) s
  )
  select json_build_object(
    'data', coalesce(
      json_agg(core.suppression_object(p.s) order by p.place) filter (where p.place <= page_size), '[]'),
    'nextCursor', case when count(*) > page_size
      then core.encode_id('cur', (array_agg((p.s).id order by p.place))[page_size]) end
  )::text
  from page p
$$;

comment on function api.list_suppressions is
  'A page of an organisation''s suppression list as JSON text, newest first (interface 4.8): entries with that text in their addresses, behind the place that the cursor names.';
