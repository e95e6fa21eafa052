create function core.person_messages(
  person text, organisation_id uuid, first_id uuid default '00000000-0000-0000-0000-000000000000',
  at_most integer default null)
returns uuid[]
language plpgsql stable
-- Its statements read many partitions: to compile them takes longer than to run them.
set jit = off
as $$
#variable_conflict use_column
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
  -- No index has the recipients of email, because it would cost every send: this reads all messages.
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
      -- Recipients in cc and bcc are in no address line; once the body is gone, only receipts name them.
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
  'The ids of the messages to an address, in lower case, or a number, newest first: of an organisation or with null of all, from an id on, at most so many or with null all. For email this reads all messages that are kept, which may take seconds.';
