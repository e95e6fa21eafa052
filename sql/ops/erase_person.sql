create function ops.erase_person(person text)
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select core.erase_person(person)
$$;

comment on function ops.erase_person is
  'Erase an email address or a number and everything sent to it. Only a hash is kept, of what forbids sending to them. Messages that wait for them end; what was sent to them stays counted and charged, without its content. What others wrote about them is erased as well, except in messages that still wait to be sent to somebody else; as an owner''s, a sender''s or a reply-to address it stays. Reads through everything that is kept. Returns how many rows named them. Raises an error while an attempt to send one of their messages is running.';
