create function ops.help(about text)
returns table (topic text, usage text, description text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_about text := lower(btrim(regexp_replace(about, '^ops\.', '')));
  v_words text[] := regexp_split_to_array(v_about, '\W+');
begin
  return query
  select m.topic, core.wrapped_usage(m.name, m.arguments),
    core.wrapped(case when m.name = v_about then m.description else m.sentence end, 36)
  from core.manual() m
  where not exists (
    -- Words match without the s of a plural.
    select from unnest(v_words) w (word)
    where strpos(lower(concat_ws(' ', m.topic, m.name, m.sentence)), rtrim(w.word, 's')) = 0)
  order by m.name <> v_about, m.place, m.arguments nulls first;
  if not found then
    raise exception 'no function or view of ops matches %', coalesce(quote_literal(left(about, 60)), 'null')
      using hint = 'select * from ops.help';
  end if;
end
$$;

comment on function ops.help(text) is
  'Search this manual by topic, name or words. Every word must occur. An entry with exactly this name comes first, with its whole description. Raises an error if nothing matches.';
