create function core.complaint_rate(
  organisation_id uuid, out complaints integer, out sent bigint, out counted_since timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- A bitmap scan or a sequential scan would read the whole day before it returns the first row.
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

  -- Emails accepted since the first complaint; for a busy sender these are enough.
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
      -- Emails accepted before that but sent later, because they were deferred or held. Read only while the
      -- emails of the last day are not enough.
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
  'Returns an organisation''s complaints and live emails sent within 24 hours. Complaints from before the last resume are not counted. sent is exact while it is at most 1,000 times complaints; beyond that it is a lower bound, and the rate is below 0.1 %.';
