create function core.check_person(person text)
returns text
language plpgsql immutable
as $$
begin
  if core.is_phone(person) then
    return person;
  -- What is around an address in a text no stored one has in it: with it nothing would be found, or erased.
  elsif person is null or length(person) not between 3 and 254
    or person !~ '^[^@\s]+@[^@\s]+\.[^@\s.]+$' or person ~ '[][<>():;,"\\]' then
    raise exception '% is neither an email address nor a number in E.164, like +27821234567',
      coalesce(quote_literal(left(person, 60)), 'null');
  elsif person ~ '[^\x21-\x7e]' then
    -- As it would be looked for in vain.
    raise exception 'give the address in ASCII, as it is stored: an international domain begins with xn--';
  end if;
  return lower(person);
end
$$;

comment on function core.check_person is
  'An address in lower case, or a number in E.164, that an operator gave to find a person by; raises one sentence when it is neither.';
