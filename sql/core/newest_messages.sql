create function core.newest_messages(organisation_id uuid, first_id uuid, at_most integer)
returns uuid[]
language sql stable
as $$
  select array(
    select m.id
    from app.messages m
    where m.organisation_id = newest_messages.organisation_id and m.id >= first_id
    order by m.id desc
    limit at_most)
$$;

comment on function core.newest_messages is
  'Returns the IDs of an organisation''s newest messages from first_id on, at most at_most of them.';
