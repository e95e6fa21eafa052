create function core.count_departures(ids uuid[])
returns void
language sql volatile
as $$
  update app.departures d
  set messages = d.messages + left_now.messages, emails_sent = d.emails_sent + left_now.emails_sent
  from (
    select l.*
    from (
      select m.organisation_id, count(*) filter (where m.scheduled_at is null) as messages,
        count(*) filter (where m.channel = 'email' and m.sent_at is not null and not m.is_rehearsal) as emails_sent
      from app.messages m
      where m.id = any (ids) and m.mode = 'live'
      group by m.organisation_id
    ) l
    join app.departures o on o.organisation_id = l.organisation_id
    order by l.organisation_id
    for no key update of o
  ) left_now
  where d.organisation_id = left_now.organisation_id
$$;

comment on function core.count_departures is
  'Take messages out of their organisations'' backlogs; to be called once for each, when it has left the queue.';
