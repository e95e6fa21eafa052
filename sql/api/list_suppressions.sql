create function api.list_suppressions(
  organisation_id uuid, page_size integer, email text default null, cursor text default null
)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- A plan made while the table was small must not scan it when it has grown.
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  -- How many entries a call looks at. No index bounds a search for any text: what is in no entry, or in
  -- old ones only, takes several pages to find out.
  c_reach constant integer := 10000;
  v_text text := lower(coalesce(list_suppressions.email, ''));
  v_pattern text := '%' || regexp_replace(v_text, '[\\%_]', '\\\&', 'g') || '%';
  v_before uuid := coalesce(core.decode_id('cur', cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_page app.suppressions[] := '{}';
  v_found app.suppressions[];
  v_next uuid;
  v_missing integer;
begin
  -- The entry of this very address comes first, on the first page, and not again in its place.
  if cursor is null then
    v_page := array(
      select s from app.suppressions s
      where s.organisation_id = list_suppressions.organisation_id and s.email = v_text);
  end if;

  v_missing := page_size - cardinality(v_page);
  v_found := array(
    select row(s.*)::app.suppressions
    from (
      select s.*
      from app.suppressions s
      where s.organisation_id = list_suppressions.organisation_id and s.id < v_before
      order by s.id desc
      limit c_reach
    ) s
    where s.email like v_pattern and s.email <> v_text
    order by s.id desc
    -- One more than is missing tells whether there are more.
    limit v_missing + 1);
  v_page := v_page || v_found[:v_missing];
  if cardinality(v_found) > v_missing then
    v_next := case when v_missing > 0 then v_found[v_missing].id else v_before end;
  else
    v_next := (
      select s.id
      from app.suppressions s
      where s.organisation_id = list_suppressions.organisation_id and s.id < v_before
      order by s.id desc
      offset c_reach - 1
      limit 1);
  end if;

  return (
    select json_build_object(
      'data', coalesce(json_agg(core.suppression_object(v_page[n]) order by n), '[]'),
      'nextCursor', core.encode_id('cur', v_next))
    from generate_subscripts(v_page, 1) n);
end
$$;

comment on function api.list_suppressions is
  'A page of an organisation''s suppression list as JSON text, newest first (interface 4.8): entries with that text in their addresses, behind the place that the cursor names. Looks at 10000 entries at most: a page with a nextCursor may be short or empty.';
