create function core.organisation_id(organisation text)
returns uuid
language plpgsql stable
as $$
declare
  v_id uuid;
begin
  select o.id into v_id
  from app.organisations o
  where o.id = core.decode_id('org', organisation);
  if v_id is null then
    raise exception 'there is no organisation %', coalesce(quote_literal(organisation), 'null')
      using hint = 'select id, name from ops.organisations';
  end if;
  return v_id;
end
$$;

comment on function core.organisation_id is 'The organisation that an operator named; raises one sentence when there is none.';
