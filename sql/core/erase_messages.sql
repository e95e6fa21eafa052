create function core.erase_messages(person text, ids uuid[])
returns integer
language plpgsql volatile
as $$
declare
  v_rows integer;
  v_total integer;
  v_marks jsonb;
  v_texts jsonb;
begin
  -- Outcomes are kept by recipient, so each erased recipient of a message needs a mark of their own.
  select jsonb_object_agg(i.id, case i.others when 0 then '(erased)' else format('(erased %s)', i.others + 1) end)
    into v_marks
  from (
    select m.id, count(distinct o.recipient) as others
    from app.messages m
    left join lateral (
      select e.detail ->> 'recipient' as recipient from app.events e where e.message_id = m.id
      union all
      select c.recipient from app.complaints c where (c.organisation_id, c.message_id) = (m.organisation_id, m.id)
      union all
      select unnest(string_to_array(m.to_address, ', '))
    ) o on o.recipient like '(erased%'
    where m.id = any (ids)
    group by m.id
  ) i;

  with own as (
    select e.message_id, e.id, e.detail, m.recipients,
      lower(e.detail ->> 'recipient') = person or m.channel = 'sms' and e.provider_event_id is not null as is_theirs
    from app.messages m
    join app.events e on e.message_id = m.id
    where m.id = any (ids) and e.message_id = any (ids)
  ),
  erased as (
    update app.events e
    set provider_event_id = core.redact(e.provider_event_id, person, v_marks ->> e.message_id::text),
      detail = case when o.is_theirs
        then e.detail || coalesce((
          select jsonb_object_agg(k.key, v_marks -> e.message_id::text)
          from unnest('{recipient,text,word}'::text[]) k (key) where e.detail ? k.key), '{}')
        else core.redact(e.detail::text, person, v_marks ->> e.message_id::text)::jsonb end
    from own o
    where e.message_id = any (ids) and (e.message_id, e.id) = (o.message_id, o.id)
      and (o.is_theirs or core.names_person(o.detail::text, person))
    returning e.message_id, core.problem_text(o.detail, o.recipients) as text
  )
  -- The message may repeat what was reported about them.
  select count(*), jsonb_object_agg(e.message_id || ' ' || e.text, true) filter (where e.text is not null)
    into v_total, v_texts
  from erased e;

  update app.messages m
  set to_address = core.redact(m.to_address, person, v_marks ->> m.id::text),
    tags = array(
      select core.redact(g.tag, person) from unnest(m.tags) with ordinality as g (tag, place) order by g.place),
    subject = case when m.subject is not null then '(erased)' end,
    error_message = case when v_texts ? (m.id || ' ' || m.error_message) then v_marks ->> m.id::text
      else core.redact(m.error_message, person) end
  where m.id = any (ids);
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  with complaint as (
    update app.complaints c set recipient = v_marks ->> c.message_id::text
    where c.message_id = any (ids) and c.recipient = person returning 1
  ),
  body as (delete from app.bodies b where b.message_id = any (ids) returning 1),
  part as (
    update app.sms_parts p set phone = '(erased)' where p.message_id = any (ids) and p.phone = person returning 1
  )
  select v_total + (select count(*) from complaint) + (select count(*) from body) + (select count(*) from part) into v_total;
  return v_total;
end
$$;

comment on function core.erase_messages is
  'Redact a person in these messages, which must be locked: their address or number, what was reported about them, and the content, which is deleted for other recipients too. Returns how many rows were changed.';
