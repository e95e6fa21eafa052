create function core.messages_mentioning(person text)
returns uuid[]
language sql stable
as $$
  select array(
    select m.id
    from app.messages m
    left join app.bodies b on b.message_id = m.id
    cross join lateral (select concat_ws(' ', m.subject, m.tags, m.error_message, b.html, b.text, b.headers) as text) t
    where strpos(lower(t.text), ltrim(person, '+')) > 0 and core.redact(t.text, person) <> t.text)
$$;

comment on function core.messages_mentioning is
  'Returns the IDs of messages that name a person (address in lower case, or number) in their text, tags or errors, whoever the recipient is. Reads all stored messages.';
