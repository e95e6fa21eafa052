create function core.list_opt_outs(
  organisation_id uuid, page_size integer, search text default null, cursor text default null
)
returns jsonb
language sql stable
as $$
  with page as (
    -- One more than is shown shows whether there are more.
    select c.phone, c.opted_out_at, c.opted_out_by, c.source, c.consented_at,
      row_number() over (order by c.opted_out_at desc, c.phone desc) as place
    from app.consents c
    where c.organisation_id = list_opt_outs.organisation_id and c.opted_out_at is not null
      and (list_opt_outs.search is null or strpos(c.phone, list_opt_outs.search) > 0)
      and (c.opted_out_at, c.phone) < (
        coalesce(timestamptz 'epoch' + split_part(list_opt_outs.cursor, ' ', 1)::bigint * interval '1 microsecond', 'infinity'),
        coalesce(split_part(list_opt_outs.cursor, ' ', 2), ''))
    order by c.opted_out_at desc, c.phone desc
    limit list_opt_outs.page_size + 1
  )
  select jsonb_build_object(
    'data', coalesce(jsonb_agg(jsonb_build_object(
        'phone', p.phone, 'optedOutAt', core.iso(p.opted_out_at), 'optedOutBy', p.opted_out_by,
        'source', p.source, 'consentedAt', core.iso(p.consented_at)) order by p.place)
      filter (where p.place <= list_opt_outs.page_size), '[]'),
    'nextCursor', (
      select (extract(epoch from l.opted_out_at) * 1000000)::bigint || ' ' || l.phone
      from page l
      where l.place = list_opt_outs.page_size and (select count(*) from page) > list_opt_outs.page_size))
  from page p
$$;

comment on function core.list_opt_outs is
  'Returns a page of the numbers that opted out of an organisation''s marketing SMS, newest first: {data: [{phone, optedOutAt, optedOutBy, source, consentedAt}], nextCursor}. search: a part of the number. cursor: microseconds since 1970, a space and a number.';
