create function core.name_servers(dkim_zone text)
returns text[]
language sql stable
as $$
  select regexp_split_to_array(
    coalesce(nullif(btrim(current_setting('postgram.name_servers', true), ', '), ''), 'ns1.' || dkim_zone),
    '[\s,]+')
$$;

comment on function core.name_servers is
  'Who serves the DKIM zone, the first one its master: the names in the setting postgram.name_servers, with commas between.';
