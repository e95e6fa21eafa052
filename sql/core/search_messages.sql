create function core.search_messages(
  organisation_id uuid, filter core.message_filter, page_size integer, before_id uuid default null,
  limit_ms integer default 100,
  out messages app.messages[], out next_id uuid, out searched_back_to timestamptz
)
language plpgsql stable
set enable_seqscan = off
set jit = off
-- To plan takes longer than to run.
set plan_cache_mode = force_generic_plan
as $$
declare
  c_most constant integer := 1000;
  -- How many messages a step reads: few while all of them may match.
  v_step integer := page_size + 1;
  v_deadline constant timestamptz := clock_timestamp() + make_interval(secs => limit_ms / 1000.0);
  v_latest constant timestamptz := core.now() + interval '1 day';
  v_first_id constant uuid := core.first_id_at(least(greatest(filter.since, '1970-01-01'), v_latest));
  -- What is left: up to this ID, and without the message at which the search is.
  v_until_id uuid := least(before_id,
    core.first_id_at(least(greatest(coalesce(filter.until, v_latest), '1970-01-01'), v_latest)));
  v_except_id uuid := v_until_id;
  v_bounds uuid[];
  v_after_id uuid;
  v_conditions core.search_condition[];
  v_found core.search_condition[];
  v_span core.search_condition;
  v_rows app.messages[];
  v_read bigint;
  v_last_id uuid;
begin
  messages := '{}';
  -- First messages that are not in the index yet, then those of whose statuses it has the rare ones only.
  select array_agg(p.indexed_until order by p.pass) || v_first_id into v_bounds from app.search_progress p;
  for v_zone in 1 .. 3 loop
    v_after_id := greatest(v_bounds[v_zone], v_first_id);
    v_conditions := case when v_zone = 1 then '{}' else core.search_conditions(filter, v_zone = 3) end;
    while v_until_id > v_after_id loop
      v_span := row(null, v_until_id, v_after_id, null);
      if v_conditions <> '{}' then
        -- Continue where each condition may have a message.
        v_found := core.next_matches(
          search_messages.organisation_id, v_conditions, v_until_id, v_except_id, v_after_id);
        exit when v_found is null;
        v_until_id := (select c.last_id from unnest(v_found) c order by c.last_id limit 1);
        -- By the messages of the condition that has the fewest; else by the span in which all are likely.
        select c.terms, v_until_id, c.first_id, c.ids into v_span
        from unnest(v_found) c
        where c.first_id <= v_until_id
        order by c.ids is null, case when c.ids is not null then c.first_id end, c.first_id desc
        limit 1;
      end if;

      if v_span.ids is not null then
        v_rows := array(
          select m
          from unnest(v_span.ids) i (id)
          join app.messages m on m.id = i.id
          where i.id <= v_until_id and m.organisation_id = search_messages.organisation_id
            and core.matches_filter(m, filter)
          order by m.id desc
          limit page_size - cardinality(messages) + 1);
        v_last_id := v_span.first_id;
      else
        with read as materialized (
          select m
          from core.read_messages(
            search_messages.organisation_id, v_span.first_id, v_until_id, v_except_id, v_step) m
        )
        select
          array(
            select r.m from read r
            where (r.m).id > v_after_id and core.matches_filter(r.m, filter)
            order by (r.m).id desc
            limit page_size - cardinality(messages) + 1),
          count(*), (select (r.m).id from read r order by (r.m).id limit 1)
          into v_rows, v_read, v_last_id
        from read r;
        if v_read < v_step then
          v_last_id := v_span.first_id;
        end if;
        v_step := least(2 * v_step, c_most);
      end if;

      messages := messages || v_rows;
      if cardinality(messages) > page_size then
        messages := messages[:page_size];
        next_id := messages[page_size].id;
        return;
      end if;
      v_until_id := greatest(v_last_id, v_after_id);
      -- The first message of the next zone is still to be read.
      continue when v_last_id <= v_after_id;
      v_except_id := v_last_id;
      if clock_timestamp() > v_deadline then
        next_id := v_last_id;
        searched_back_to := core.id_time(v_last_id);
        return;
      end if;
    end loop;
    v_until_id := least(v_until_id, v_after_id);
  end loop;
end
$$;

comment on function core.search_messages is
  'Search the messages of an organisation, newest first, before a message or all (null). Returns a page, and next_id to continue before, null at the end. A search reads for limit_ms at most, 0.1 s by default; if it has not filled its page by then, searched_back_to says how far it came, and is null otherwise.';
