create function core.person_messages(
  person text, organisation_id uuid, first_id uuid default '00000000-0000-0000-0000-000000000000',
  at_most integer default null)
returns uuid[]
language plpgsql stable
-- Compiling these statements, which read many partitions, takes longer than running them.
set jit = off
as $$
begin
  if core.is_phone(person) then
    return array(
      select m.id
      from app.messages m
      where m.channel = 'sms' and m.to_address = person and m.id >= first_id
        and (person_messages.organisation_id is null or m.organisation_id = person_messages.organisation_id)
      order by m.id desc
      limit at_most);
  end if;
  -- No index contains email recipients, because it would slow down every send. This reads all stored email.
  return array(
    select m.id
    from app.messages m
    where m.channel = 'email' and m.id >= first_id and strpos(lower(m.to_address), person) > 0
      and person = any (string_to_array(lower(m.to_address), ', '))
      and (person_messages.organisation_id is null or m.organisation_id = person_messages.organisation_id)
    union
    select m.id
    from (
      select b.message_id from app.bodies b where b.message_id >= first_id and person = any (b.recipients)
      union
      -- Copies (cc, bcc) are not in to_address. Once the body is deleted, receipts still name them.
      select e.message_id from app.events e where e.message_id >= first_id and lower(e.detail ->> 'recipient') = person
      union
      select c.message_id from app.complaints c where c.message_id >= first_id and c.recipient = person
    ) f
    join app.messages m on m.id = f.message_id and m.channel = 'email'
    where person_messages.organisation_id is null or m.organisation_id = person_messages.organisation_id
    order by id desc
    limit at_most);
end
$$;

comment on function core.person_messages is
  'Returns the IDs of the messages to a person (address in lower case, or number), newest first: from first_id on, of one organisation or all (null), at most at_most or all (null). For an address it reads all stored email, which may take seconds.';
