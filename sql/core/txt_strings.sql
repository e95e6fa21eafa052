create function core.txt_strings(value text)
returns text
language sql immutable
as $$
  select string_agg('"' || regexp_replace(s.string[1], '(["\\])', '\\\1', 'g') || '"', ' ' order by s.place)
  from regexp_matches(value, '.{1,255}', 'g') with ordinality as s (string, place)
$$;

comment on function core.txt_strings is
  'Returns a TXT value of printable ASCII in master file format (RFC 1035 section 5.1): quoted strings of at most 255 characters.';
