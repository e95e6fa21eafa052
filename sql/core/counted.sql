create function core.counted(count bigint, noun text, plural text default null)
returns text
language sql immutable
as $$
  select count || ' ' || case count when 1 then noun else coalesce(plural, noun || 's') end
$$;

comment on function core.counted is 'Returns a number with its noun: 1 segment, 2 segments. plural is for nouns that do not end in s.';
