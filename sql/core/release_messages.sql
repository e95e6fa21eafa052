create function core.release_messages(due app.due_messages[])
returns integer
language plpgsql volatile
as $$
declare
  v_channel app.channel;
  v_messages core.message_to_enqueue[];
  v_count integer := 0;
begin
  for v_channel, v_messages in
    select m.channel, array_agg((
        m.id,
        -- A scheduled message counts in no backlog. So messages that fall due together count each other: a
        -- hundred thousand of one organisation must not come before another's login code.
        greatest(d.priority, core.priority(b.backlog + d.place, m.class)),
        -- Null, which is at once, for a held message.
        now() + (d.due_at - core.now())
      )::core.message_to_enqueue order by d.place)
    from (
      select u.*, row_number() over (partition by u.organisation_id order by u.due_at, u.message_id) as place
      from unnest(due) u
    ) d
    join (
      select o.organisation_id, core.backlog(o.organisation_id) as backlog
      from (select distinct u.organisation_id from unnest(due) u) o
    ) b on b.organisation_id = d.organisation_id
    join app.messages m on m.id = d.message_id
    group by m.channel
  loop
    perform core.add_jobs(core.send_jobs(v_channel, v_messages));
    v_count := v_count + cardinality(v_messages);
  end loop;
  return v_count;
end
$$;

comment on function core.release_messages is
  'Enqueue messages that waited: each runs when it is due, behind those of its organisation that wait already or are due before it. Returns how many.';
