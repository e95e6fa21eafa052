create function core.find_suppressions(organisation_id uuid, email text, before uuid, page_size integer)
returns setof app.suppressions
language plpgsql stable
-- A plan made while the table was small must not scan it when it has grown.
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_pattern text := '%' || regexp_replace(lower(coalesce(find_suppressions.email, '')), '[\\%_]', '\\\&', 'g') || '%';
  -- Without three letters or digits in a row there is no trigram to look up: all is walked through.
  v_reach integer := case when find_suppressions.email ~* '[a-z0-9]{3}' then 10000 end;
  v_before uuid := coalesce(before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_found integer;
begin
  -- No plan can know whether a text is in nearly all entries or in none. So the newest are walked
  -- through first: what is frequent fills the page from them, and a short list ends in them.
  return query
  select s.*
  from (
    select s.*
    from app.suppressions s
    where s.organisation_id = find_suppressions.organisation_id and s.id < v_before
    order by s.id desc
    limit v_reach
  ) s
  where s.email like v_pattern
  order by s.id desc
  limit page_size;
  get diagnostics v_found = row_count;
  if v_found = page_size or v_reach is null then
    return;
  end if;

  select s.id into v_before
  from app.suppressions s
  where s.organisation_id = find_suppressions.organisation_id and s.id < v_before
  order by s.id desc
  offset v_reach - 1
  limit 1;
  if v_before is null then
    return;
  end if;

  -- What is left is rare, and found by its trigrams. All of it first, which only the index of these
  -- can do: with the order and the limit beside them, another could seem to be cheaper.
  return query
  with matching as materialized (
    select s.id
    from app.suppressions s
    where array[s.organisation_id] @> array[find_suppressions.organisation_id] and s.email like v_pattern
  )
  select s.*
  from (
    select m.id from matching m where m.id < v_before order by m.id desc
    limit page_size - v_found
  ) m
  join app.suppressions s on s.organisation_id = find_suppressions.organisation_id and s.id = m.id
  order by m.id desc;
end
$$;

comment on function core.find_suppressions is
  'The newest of an organisation''s entries before that one, with that text in their addresses in any case; null for any.';
