create function core.check_webhook_url(url text)
returns void
language plpgsql stable
as $$
declare
  v_problem text := core.webhook_url_problem(url);
begin
  if v_problem is not null then
    raise exception 'the URL %', v_problem;
  end if;
end
$$;

comment on function core.check_webhook_url is 'Raises an error if events cannot be delivered to the URL.';
