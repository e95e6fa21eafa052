create function core.check_phone(phone text)
returns void
language plpgsql immutable
as $$
begin
  if not coalesce(core.is_phone(phone), false) then
    raise exception '% is not a number in E.164, such as +27821234567', coalesce(quote_literal(phone), 'null');
  end if;
end
$$;

comment on function core.check_phone is 'Raises an error if the argument is not a number in E.164.';
