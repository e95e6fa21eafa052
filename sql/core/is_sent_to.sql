create function core.is_sent_to(m app.messages, recipient text)
returns boolean
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return recipient = any (string_to_array(lower(m.to_address), ', '))
    or exists (
      select from app.message_terms t
      where t.term = core.recipient_term(recipient) and t.organisation_id = m.organisation_id and t.first_id = m.id)
    -- The newest messages are not in the index yet.
    or exists (select from app.bodies b where b.message_id = m.id and recipient = any (b.recipients));
end
$$;

comment on function core.is_sent_to is
  'Returns whether an address in lower case, or a number, is a recipient of a message (to, cc or bcc).';
