create function core.erase_webhooks(person text, ids uuid[])
returns integer
language plpgsql volatile
as $$
declare
  v_orphans uuid[] := array(select o.id from core.orphaned_events(person) o (id));
  v_organisations uuid[] := array(
    select m.organisation_id from app.messages m where m.id = any (ids)
    union
    select v.organisation_id from app.webhook_events v where v.id = any (v_orphans));
  v_events uuid[];
  v_attempts integer;
begin
  with erased as (
    update app.webhook_events v
    set body = core.redact(
      replace(
        replace(v.body, '"subject" : ' || coalesce(to_json(m.subject)::text, 'null'),
          '"subject" : ' || case when m.subject is null then 'null' else '"(erased)"' end),
        '"message" : ' || coalesce(t.error, 'null'),
        '"message" : ' || case when t.error is null then 'null' else '"(erased)"' end),
      person)
    from app.messages m
    left join lateral (
      -- The error about them, not about another recipient.
      select to_json(m.error_message)::text as error
      from app.events e
      where e.message_id = m.id and e.provider_event_id is not null
        and core.problem_text(e.detail, m.recipients) = m.error_message
        and (m.channel = 'sms' or lower(e.detail ->> 'recipient') = person)
      limit 1
    ) t on true
    where v.organisation_id = any (v_organisations) and v.message_id = any (ids) and m.id = v.message_id
    returning v.id
  )
  select array_agg(e.id) || v_orphans into v_events from erased e;
  -- Their message is gone, so its subject and error are redacted whatever they say.
  update app.webhook_events v
  set body = core.redact(
    regexp_replace(v.body, '"(subject|message)" : "(\\.|[^"\\])*"', '"\1" : "(erased)"', 'g'), person)
  where v.id = any (v_orphans);

  update app.webhook_attempts a
  set response = core.redact(a.response, person), error = core.redact(a.error, person)
  where a.endpoint_id in (select p.id from app.webhook_endpoints p where p.organisation_id = any (v_organisations))
    and a.event_id = any (v_events)
    and (core.names_person(a.response, person) or core.names_person(a.error, person));
  get diagnostics v_attempts = row_count;
  update app.webhook_endpoints p
  set last_error = core.redact(p.last_error, person)
  where p.organisation_id = any (v_organisations) and core.names_person(p.last_error, person);
  return coalesce(cardinality(v_events), 0) + v_attempts;
end
$$;

comment on function core.erase_webhooks is
  'Redact a person in the webhook events of these messages and in the responses of endpoints; called before the messages themselves are redacted. Events that still wait are delivered redacted, because their receivers need the status of the message.';
