create function core.check_email(email text)
returns void
language plpgsql immutable
as $$
begin
  if email is null or length(email) not between 3 and 254 or email !~ '^[^@\s]+@[^@\s]+\.[^@\s]+$' then
    raise exception '% is not an email address', coalesce(quote_literal(email), 'null');
  end if;
end
$$;

comment on function core.check_email is 'Raises an error if the argument is not an email address.';
