create function core.person_messages(
  person text, organisation_id uuid, first_id uuid default '00000000-0000-0000-0000-000000000000',
  at_most integer default null)
returns uuid[]
language plpgsql stable
-- Compiling these statements, which read many partitions, takes longer than running them.
set jit = off
-- An address is found by an index in each partition.
set enable_seqscan = off
as $$
declare
  v_indexed_id uuid;
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
  select p.indexed_until into v_indexed_id from app.search_progress p where p.pass = 'accepted';
  return array(
    -- The organisations that wrote to the person, each found from the one before.
    with recursive sender (organisation_id) as (
      select coalesce(person_messages.organisation_id, (
        select t.organisation_id
        from app.message_terms t
        where t.term = core.recipient_term(person) and t.first_id >= person_messages.first_id
        order by t.organisation_id
        limit 1))
      union all
      select (
        select t.organisation_id
        from app.message_terms t
        where t.term = core.recipient_term(person) and t.first_id >= person_messages.first_id
          and t.organisation_id > s.organisation_id
        order by t.organisation_id
        limit 1)
      from sender s
      where s.organisation_id is not null and person_messages.organisation_id is null
    ),
    -- Messages that are not in the index yet. Copies (cc, bcc) are not in to_address.
    recent as (
      select m.id
      from app.messages m
      where m.channel = 'email' and m.id >= first_id and m.id > v_indexed_id and strpos(lower(m.to_address), person) > 0
        and person = any (string_to_array(lower(m.to_address), ', '))
        and (person_messages.organisation_id is null or m.organisation_id = person_messages.organisation_id)
      union
      select m.id
      from (
        select b.message_id
        from app.bodies b
        where b.message_id >= first_id and b.message_id > v_indexed_id and person = any (b.recipients)
        union
        -- Once the body is deleted, receipts still name them.
        select e.message_id
        from app.events e
        where e.message_id >= first_id and e.message_id > v_indexed_id and lower(e.detail ->> 'recipient') = person
      ) f
      join app.messages m on m.id = f.message_id and m.channel = 'email'
      where person_messages.organisation_id is null or m.organisation_id = person_messages.organisation_id
    )
    select r.id from recent r
    union
    select t.first_id
    from sender s
    cross join lateral (
      select t.first_id
      from app.message_terms t
      where t.term = core.recipient_term(person) and t.organisation_id = s.organisation_id
        and t.first_id >= person_messages.first_id
      order by t.first_id desc
      limit at_most
    ) t
    order by id desc
    limit at_most);
end
$$;

comment on function core.person_messages is
  'Returns the IDs of the messages to a person (address in lower case, or number), newest first: from first_id on, of one organisation or all (null), at most at_most or all (null). Found by indexes, except messages to an address in the last minutes, which are read.';
