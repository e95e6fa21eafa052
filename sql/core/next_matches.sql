create function core.next_matches(
  organisation_id uuid, conditions core.search_condition[], until_id uuid, except_id uuid, after_id uuid
)
returns core.search_condition[]
language plpgsql stable
set enable_seqscan = off
set jit = off
-- To plan takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  c_ids constant integer := 200;
  -- A span begins in the month of its messages.
  v_month_id constant uuid := core.first_id_at(date_trunc('month', core.id_time(after_id), 'UTC'));
  v_condition core.search_condition;
  v_spans core.search_condition[];
  v_wide integer;
  v_found core.search_condition[] := '{}';
begin
  foreach v_condition in array conditions loop
    v_spans := array(
      select row(null, least(s.last_id, until_id), s.first_id, null)::core.search_condition
      from unnest(v_condition.terms) t (term)
      cross join lateral (
        select s.first_id, s.last_id
        from app.message_terms s
        where s.term = t.term and s.organisation_id = next_matches.organisation_id
          and s.first_id <= until_id and s.first_id >= v_month_id and s.first_id <> except_id
        order by s.first_id desc
        limit c_ids
      ) s
      where s.last_id > after_id
      order by least(s.last_id, until_id) desc, s.first_id
      limit c_ids);
    if v_spans = '{}' then
      return null;
    end if;
    v_condition.last_id := v_spans[1].last_id;
    if v_spans[1].first_id = v_spans[1].last_id then
      v_wide := (
        select min(s.place) from unnest(v_spans) with ordinality s (terms, last_id, first_id, ids, place)
        where s.first_id <> s.last_id);
      v_condition.ids := array(
        select s.first_id from unnest(v_spans[:coalesce(v_wide - 1, c_ids)]) s);
      v_condition.first_id := v_condition.ids[cardinality(v_condition.ids)];
    else
      v_condition.ids := null;
      v_condition.first_id := v_spans[1].first_id;
    end if;
    v_found := v_found || v_condition;
  end loop;
  return v_found;
end
$$;

comment on function core.next_matches is
  'Returns, for each condition of a search, where the newest messages with one of its terms may be: up to until_id, without except_id, after after_id. null if a condition has none.';
