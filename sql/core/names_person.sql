create function core.names_person(given text, person text)
returns boolean
language sql immutable
as $$
  -- case keeps the order: the planner would run the regular expression first, on perhaps millions of texts.
  -- Addresses are in ASCII, and the collation "C" is several times as fast.
  select case when strpos(lower(given collate "C"), ltrim(person, '+')) > 0
    then core.redact(given, person) <> given else false end
$$;

comment on function core.names_person is
  'Returns whether core.redact changes a text: whether it names a person (address in lower case, or number).';
