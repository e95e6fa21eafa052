create function core.name_servers(dkim_zone text)
returns text[]
language sql stable
as $$
  select regexp_split_to_array(
    coalesce(nullif(btrim(current_setting('postgram.name_servers', true), ', '), ''), 'ns1.' || dkim_zone),
    '[\s,]+')
$$;

comment on function core.name_servers is
  'Returns the name servers of the DKIM zone, the primary first: the comma-separated names in the setting postgram.name_servers, or ns1 within the zone.';
