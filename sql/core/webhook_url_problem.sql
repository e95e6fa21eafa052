create function core.webhook_url_problem(url text)
returns text
language plpgsql stable
as $$
begin
  if url is null or url !~ '^https?://' then
    return 'is not an https URL';
  end if;
  return null;
end
$$;

comment on function core.webhook_url_problem is
  'Why events cannot be delivered to a URL, as the rest of a sentence; null when nothing is wrong with it. What its name leads to is checked when it is connected to.';
