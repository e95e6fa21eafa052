create function core.check_name(name text)
returns void
language plpgsql immutable
as $$
begin
  -- Names appear in notices and lists, where a line break would look like a second entry.
  if coalesce(length(name), 0) not between 1 and 200 or btrim(name) = '' or name ~ '[[:cntrl:]]' then
    raise exception 'the name must be 1 to 200 characters in one line, not only spaces';
  end if;
end
$$;

comment on function core.check_name is
  'Raises an error if the argument is not valid as a name: 1 to 200 characters without control characters, not only spaces.';
