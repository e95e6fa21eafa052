create function core.check_name(name text)
returns void
language plpgsql immutable
as $$
begin
  -- Names stand in mail to owners and in lists, where a line break would pretend to be more than one.
  if coalesce(length(name), 0) not between 1 and 200 or btrim(name) = '' or name ~ '[[:cntrl:]]' then
    raise exception 'the name must be 1 to 200 characters, in one line and not only spaces';
  end if;
end
$$;

comment on function core.check_name is 'Raise one sentence when an operator''s argument is not fit for a name.';
