create function core.recipient_term(recipient text)
returns text
language sql immutable
as $$
  select 'to:' || recipient
$$;

comment on function core.recipient_term is
  'Returns the term by which messages to an address in lower case, or to a number, are searched.';
