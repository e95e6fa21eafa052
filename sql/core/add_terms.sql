create function core.add_terms(terms core.message_term[])
returns void
language plpgsql volatile
set enable_seqscan = off
set jit = off
-- Months are those of the partitions.
set timezone = 'UTC'
-- Thousands of terms go through sorts; on disk these would take ten times as long.
set work_mem = '32MB'
as $$
declare
  -- A span has no gap of more messages than this. A search may have to read as many for each that it finds.
  c_gap constant integer := 32;
begin
  if coalesce(cardinality(terms), 0) = 0 then
    return;
  end if;

  -- A recipient has a row for each message: a body, which proves who got it, is not kept as long as the message.
  insert into app.message_terms (term, organisation_id, first_id, last_id)
  select t.term, t.organisation_id, t.message_id, t.message_id
  from unnest(terms) t
  where starts_with(t.term, 'to:')
  order by t.term, t.organisation_id, t.message_id
  on conflict do nothing;

  insert into app.message_terms (term, organisation_id, first_id, last_id)
  with month as materialized (
    select core.first_id_at(m.at) as month_id, core.first_id_at(m.at + interval '1 month') as next_id
    from generate_series(
      date_trunc('month', core.id_time((select t.message_id from unnest(terms) t order by t.message_id limit 1))),
      core.id_time((select t.message_id from unnest(terms) t order by t.message_id desc limit 1)),
      interval '1 month') m (at)
  ),
  item as materialized (
    select t.term, t.organisation_id, m.month_id, t.message_id as id,
      (t.place - lag(t.place) over w <= c_gap + 1) is not true as is_first,
      (lead(t.place) over w - t.place <= c_gap + 1) is not true as is_last
    from unnest(terms) t
    join month m on t.message_id >= m.month_id and t.message_id < m.next_id
    where not starts_with(t.term, 'to:')
    window w as (partition by t.term collate "C", t.organisation_id, m.month_id order by t.message_id)
  ),
  -- Messages without a large gap between them are one span.
  made as (
    select e.*
    from (
      select i.term, i.organisation_id, i.month_id, i.is_first, i.id as first_id,
        case when i.is_last then i.id else lead(i.id) over w end as last_id
      from item i
      where i.is_first or i.is_last
      window w as (partition by i.term collate "C", i.organisation_id, i.month_id order by i.id)
    ) e
    where e.is_first
  ),
  -- The newest span in the index that begins before its end.
  placed as materialized (
    select m.*, (
      select array[s.first_id, s.last_id]
      from app.message_terms s
      where s.term = m.term and s.organisation_id = m.organisation_id
        and s.first_id >= m.month_id and s.first_id <= m.last_id
      order by s.first_id desc
      limit 1) as span
    from made m
  )
  select distinct on (1, 2, 3) n.term, n.organisation_id, n.first_id, n.last_id
  from (
    -- It continues that span, or makes one of its own after a large gap.
    select p.term, p.organisation_id, p.last_id,
      case when (
        select count(*) from (
          select from app.messages b
          where b.organisation_id = p.organisation_id and b.id > p.span[2] and b.id < p.first_id
          limit c_gap + 1) b
      ) <= c_gap and p.span is not null then p.span[1] else p.first_id end as first_id
    from placed p
    where p.span is null or p.span[2] < p.first_id
    union all
    -- Where they overlap, each message that no span holds makes a span of its own.
    select i.term, i.organisation_id, i.id, i.id
    from placed p
    join item i on i.term = p.term and i.organisation_id = p.organisation_id and i.id between p.first_id and p.last_id
    where p.span[2] >= p.first_id and not (p.span[1] <= p.first_id and p.span[2] >= p.last_id)
      and not coalesce((
        select e.last_id >= i.id
        from app.message_terms e
        where e.term = i.term and e.organisation_id = i.organisation_id
          and e.first_id >= p.month_id and e.first_id <= i.id
        order by e.first_id desc
        limit 1), false)
  ) n
  order by 1, 2, 3, n.last_id desc
  on conflict (term, organisation_id, first_id) do update set last_id = excluded.last_id;
end
$$;

comment on function core.add_terms is
  'Add messages to the index of the search, each with a term once. The caller holds core.search_lock(), so that the spans of a term never overlap. What is in the index already changes nothing.';
