create function core.iso(at timestamptz)
returns text
language sql stable
as $$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

comment on function core.iso is 'Returns a time as the API shows it: ISO 8601 in UTC with milliseconds.';
