create function core.wrapped(given text, width integer)
returns text
language sql immutable
as $$
  select rtrim(regexp_replace(given, format('(\S.{0,%s})(?: +|$)', width - 1), E'\\1\n', 'g'), E'\n')
$$;

comment on function core.wrapped is
  'Returns a text in lines of at most width characters, broken at spaces. A longer word gets its own line.';
