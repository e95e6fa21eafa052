create function core.erase_person(person text)
returns integer
language plpgsql volatile
-- Its statements read many partitions: to compile them takes longer than to run them.
set jit = off
as $$
declare
  v_person text := core.check_person(person);
  v_ids uuid[];
  v_mentions uuid[];
  v_others core.message_term[];
  v_staged integer;
  v_audit jsonb;
  v_rows integer;
begin
  -- Locked first, as the clock does.
  perform from app.erasures e where e.person = v_person for update;
  if core.is_phone(v_person) then
    -- Replies take consents before messages; they are few and wait.
    perform pg_advisory_xact_lock(hashtextextended('postgram inbound', 0));
  end if;
  v_ids := core.person_messages(v_person, null);
  -- Messages to others that name the person in their text, tags or errors: this reads all stored messages.
  v_mentions := array(
    select m.id
    from app.messages m
    left join app.bodies b on b.message_id = m.id
    cross join lateral (select concat_ws(' ', m.subject, m.tags, m.error_message, b.html, b.text, b.headers) as text) t
    where core.names_person(t.text, v_person)
      and m.id <> all (v_ids));
  -- The sandbox takes its own before messages.
  perform from app.sandbox_reports s where core.names_person(s.reports::text, v_person) order by s.id for update;
  -- In the order of their ids, as every writer of messages locks them.
  perform from app.messages m where m.id = any (v_ids || v_mentions) order by m.id for no key update;
  perform core.end_person_messages(v_ids);
  -- The bodies, which are deleted, may be all that says who else got a copy.
  v_others := array(
    select row(m.organisation_id, core.recipient_term(r.recipient), m.id, null)::core.message_term
    from app.bodies b
    join app.messages m on m.id = b.message_id
    cross join unnest(b.recipients) r (recipient)
    where b.message_id = any (v_ids) and m.channel = 'email' and r.recipient <> v_person);
  v_rows := core.hash_suppressions(v_person);
  v_rows := v_rows + core.erase_webhooks(v_person, v_ids);
  v_rows := v_rows + core.erase_messages(v_person, v_ids);
  v_rows := v_rows + core.erase_traces(v_person) + core.erase_tags(v_person);
  v_rows := v_rows + core.erase_mentions(v_person, v_mentions);
  v_rows := v_rows + core.erase_terms(v_person, v_ids || v_mentions, v_others);
  v_audit := core.erase_audit(v_person);
  v_rows := v_rows + (select count(*) from jsonb_object_keys(v_audit));
  delete from ops.staged_numbers s where btrim(s.phone) = v_person;
  get diagnostics v_staged = row_count;
  v_rows := v_rows + v_staged;

  perform core.audit('erase_person', null,
    encode((select core.person_sha256(v_person, s.salt) from app.person_salt s), 'hex'), null,
    case when v_rows > 0 then jsonb_build_object('messages', cardinality(v_ids), 'rows', v_rows, 'audit', v_audit) end);
  update app.erasures e
  set person = null, finished_at = core.now(), rows = v_rows, error = null
  where e.person = v_person;
  return v_rows;
end
$$;

comment on function core.erase_person is
  'Erase an email address or a number and everything sent to it, as the comment on ops.erase_person says, and finish a request for it. Returns how many rows named them.';
