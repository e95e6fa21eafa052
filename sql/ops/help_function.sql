create function ops.help(about text)
returns table (topic text, name text, arguments text, what text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_about text := lower(btrim(regexp_replace(about, '^ops\.', '')));
  v_words text[] := regexp_split_to_array(v_about, '\W+');
begin
  return query
  select m.topic, m.name, core.wrapped(m.arguments, 21),
    core.wrapped(case when m.name = v_about then m.description else m.sentence end, 35)
  from core.manual() m
  where not exists (
    -- Without the s of a plural.
    select from unnest(v_words) w (word)
    where strpos(lower(concat_ws(' ', m.topic, m.name, m.sentence)), rtrim(w.word, 's')) = 0)
  order by m.name <> v_about, m.place, m.arguments nulls first;
  if not found then
    raise exception 'nothing in ops is about %', coalesce(quote_literal(left(about, 60)), 'null')
      using hint = 'select topic, name, what from ops.help';
  end if;
end
$$;

comment on function ops.help(text) is
  'Search this manual by topic, name or words. All words have to occur. Of an entry with that very name the whole description is shown.';
