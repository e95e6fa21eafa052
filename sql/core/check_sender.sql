create function core.check_sender(sender text)
returns void
language plpgsql immutable
as $$
begin
  if sender is null or not core.is_phone(sender) and sender !~ '^(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11}$' then
    raise exception '% is neither a number in E.164 nor 1 to 11 letters, digits and spaces with at least one letter',
      coalesce(quote_literal(sender), 'null');
  end if;
end
$$;

comment on function core.check_sender is 'Raises an error if the argument is not a sender ID.';
