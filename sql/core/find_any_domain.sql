create function core.find_any_domain(domain text)
returns app.domains
language plpgsql stable
as $$
declare
  v_domain app.domains;
begin
  select d.* into v_domain
  from app.domains d
  where (d.id = core.decode_id('dom', domain) or d.name = lower(domain)) and d.change is distinct from 'adding';
  if v_domain.id is null then
    raise exception 'there is no domain %', coalesce(quote_literal(domain), 'null')
      using hint = 'select id, name from ops.domains';
  end if;
  return v_domain;
end
$$;

comment on function core.find_any_domain is
  'Returns the domain with this ID or name, of any organisation. Raises an error if there is none.';
