create function core.export_messages(person text, ids uuid[])
returns setof core.personal_record
language sql stable
as $$
  with mine as materialized (
    select m, m.id, m.organisation_id, m.channel,
      core.message_id(m.channel, m.id) as shown
    from app.messages m
    where m.id = any (ids)
  )
  select 'message', i.organisation_id, i.shown, (i.m).created_at,
    core.message_object(i.m)::jsonb || coalesce(to_jsonb(b) - 'message_id', '{}')
  from mine i
  left join app.bodies b on b.message_id = any (ids) and b.message_id = i.id
  union all
  select 'timeline', i.organisation_id, i.shown, e.occurred_at, jsonb_build_object('type', e.type, 'detail', e.detail)
  from mine i
  join app.events e on e.message_id = any (ids) and e.message_id = i.id
  -- Not the events of other recipients.
  where coalesce(lower(e.detail ->> 'recipient'), person) = person
  union all
  select 'complaint', c.organisation_id, i.shown, c.received_at, to_jsonb(c) - '{organisation_id,message_id}'::text[]
  from mine i
  join app.complaints c on (c.organisation_id, c.message_id) = (i.organisation_id, i.id)
  where c.recipient = person
  union all
  select 'webhook event', v.organisation_id, core.encode_id('evt', v.id), v.occurred_at, v.body::jsonb
  from app.webhook_events v
  where v.organisation_id in (select i.organisation_id from mine i) and v.message_id = any (ids)
  union all
  select 'webhook attempt', p.organisation_id, core.encode_id('evt', a.event_id), a.started_at,
    to_jsonb(a) - '{endpoint_id,event_id}'::text[] || jsonb_build_object('endpoint', core.encode_id('we', a.endpoint_id))
  from app.webhook_endpoints p
  join app.webhook_attempts a on a.endpoint_id = p.id
  where p.organisation_id in (select i.organisation_id from mine i)
    and core.names_person(concat_ws(' ', a.error, a.response), person)
    -- As an array the ids become an index condition; with a join the planner may search the text of every
    -- attempt first.
    and a.event_id = any (array(select v.id from app.webhook_events v
      where v.organisation_id in (select i.organisation_id from mine i) and v.message_id = any (ids)))
  union all
  select 'SMS part', i.organisation_id, i.shown, p.taken_at, to_jsonb(p) - 'message_id'
  from mine i
  join app.sms_parts p on p.message_id = i.id
$$;

comment on function core.export_messages is
  'Returns the records of these messages to a person: the messages, timelines, complaints, webhook events and attempts, and SMS parts.';
