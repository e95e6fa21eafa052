-- As the owner, because a view of ops asks it: what a view calls runs as whoever reads the view.
create function core.complaint_rate(
  organisation_id uuid, out complaints integer, out sent bigint, out counted_since timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- A bitmap would read the whole day before the first row; so would a scan of the table.
set enable_bitmapscan = off
set enable_seqscan = off
as $$
declare
  v_since timestamptz := core.now() - interval '24 hours';
  v_first uuid := core.first_id_at(v_since);
begin
  select greatest(v_since, o.complaints_since) into counted_since
  from app.organisations o
  where o.id = complaint_rate.organisation_id;

  -- What was sent since the first of them, which for a busy sender is enough to know.
  select count(*), max(d.emails_sent) - min(c.emails_sent) into complaints, sent
  from app.complaints c
  join app.counters d on d.organisation_id = c.organisation_id
  where c.organisation_id = complaint_rate.organisation_id and c.received_at > counted_since;
  if sent > complaints * 1000::bigint then
    return;
  end if;

  select count(*) into sent
  from (
    select
    from (
      select m.*
      from app.messages m
      where m.organisation_id = complaint_rate.organisation_id and m.id >= v_first
      union all
      -- What was put off, or held by a pause, was accepted before; looked for only as long as what
      -- was accepted within the day is not enough.
      select m.*
      from app.messages m
      where m.organisation_id = complaint_rate.organisation_id
        and m.id < v_first and m.id >= core.first_id_at(v_since - interval '7 days')
    ) m
    where m.sent_at > v_since and m.mode = 'live' and m.channel = 'email' and not m.is_sandbox
    limit complaints * 1000::bigint + 1
  ) enough;
end
$$;

comment on function core.complaint_rate is
  'An organisation''s complaints and live emails sent within 24 hours (design section 8), complaints only since a pause was lifted. sent is exact while there are at most 1000 to a complaint, and otherwise some number above that: the rate is below 0.1 % then.';
