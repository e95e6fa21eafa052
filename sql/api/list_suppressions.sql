create function api.list_suppressions(
  organisation_id uuid, page_size integer, email text default null, cursor text default null
)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.list_suppressions(
    list_suppressions.organisation_id, list_suppressions.page_size, list_suppressions.email, list_suppressions.cursor)
$$;

comment on function api.list_suppressions is
  'Returns a page of an organisation''s suppression list as JSON text, newest first: entries whose address contains the text of email, after the cursor. Reads at most 10 000 entries, so a page with a nextCursor may be short or empty.';
