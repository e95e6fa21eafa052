create function core.count_dequeued(ids uuid[])
returns void
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
begin
  if v_first_id is null then
    return;
  end if;
  update app.counters d
  set messages_dequeued = d.messages_dequeued + left_now.messages, emails_sent = d.emails_sent + left_now.emails_sent
  from (
    select l.*
    from (
      select m.organisation_id, count(*) filter (where m.scheduled_at is null) as messages,
        count(*) filter (where m.channel = 'email' and m.sent_at is not null and not m.is_sandbox) as emails_sent
      from app.messages m
      where m.id = any (ids) and m.id between v_first_id and v_last_id and m.mode = 'live'
      group by m.organisation_id
    ) l
    join app.counters o on o.organisation_id = l.organisation_id
    order by l.organisation_id
    for no key update of o
  ) left_now
  where d.organisation_id = left_now.organisation_id;
end
$$;

comment on function core.count_dequeued is
  'Take messages out of the backlogs of their organisations; called once for each message, when it leaves the queue. Locks counters by organisation.';
