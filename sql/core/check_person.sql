create function core.check_person(person text)
returns text
language plpgsql immutable
as $$
begin
  if core.is_phone(person) then
    return person;
  -- No stored address contains these characters. An address copied with them would match nothing.
  elsif person is null or length(person) not between 3 and 254
    or person !~ '^[^@\s]+@[^@\s]+\.[^@\s.]+$' or person ~ '[][<>():;,"\\]' then
    raise exception '% is neither an email address nor a number in E.164, such as +27821234567',
      coalesce(quote_literal(left(person, 60)), 'null');
  elsif person ~ '[^\x21-\x7e]' then
    -- It would match nothing.
    raise exception 'the address must be in ASCII, as it is stored; write an international domain in its ASCII form (xn--)';
  end if;
  return lower(person);
end
$$;

comment on function core.check_person is
  'Returns an email address in lower case, or a number in E.164 unchanged. Raises an error if the argument is neither.';
