create function ops.example(name text)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := lower(btrim(regexp_replace(name, '^ops\.', '')));
  v_example text := (select min(m.example) from core.manual() m where m.name = v_name);
begin
  if v_example is null then
    raise exception 'ops has no function or view %', coalesce(quote_literal(left(name, 60)), 'null')
      using hint = 'select * from ops.help';
  end if;
  return v_example;
end
$$;

comment on function ops.example is
  'Return a statement that shows how to use a function or view. Replace its example names, such as Acme, with your own.';
