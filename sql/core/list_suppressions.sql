create function core.list_suppressions(
  organisation_id uuid, page_size integer, email text default null, cursor text default null
)
returns text
language plpgsql stable
set enable_seqscan = off
as $$
declare
  -- How many entries a call reads. No index bounds a search for any text: a text that is in no entry, or only
  -- in old ones, takes several pages to find.
  c_reach constant integer := 10000;
  v_text text := lower(coalesce(list_suppressions.email, ''));
  v_pattern text := '%' || regexp_replace(v_text, '[\\%_]', '\\\&', 'g') || '%';
  v_before uuid := coalesce(core.decode_id('cur', cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_page app.suppressions[] := '{}';
  v_found app.suppressions[];
  v_next uuid;
  v_missing integer;
begin
  -- The entry of exactly this address comes first on the first page, and is left out further on.
  if cursor is null then
    v_page := array(
      select s from app.suppressions s
      where s.organisation_id = list_suppressions.organisation_id and s.email = v_text);
  end if;

  -- Fill the page with the newest entries that contain the text.
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
    -- One more than is missing shows whether there are more.
    limit v_missing + 1);
  v_page := v_page || v_found[:v_missing];
  -- The cursor is the last entry shown, or the last one read.
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

comment on function core.list_suppressions is
  'Returns a page of an organisation''s suppression list as JSON text, newest first: entries whose address contains the text of email, after the cursor. Reads at most 10 000 entries, so a page with a nextCursor may be short or empty.';
