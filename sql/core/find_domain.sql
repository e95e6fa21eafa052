create function core.find_domain(organisation_id uuid, id text)
returns app.domains
language plpgsql volatile
as $$
declare
  v_domain app.domains;
begin
  select d.* into v_domain
  from app.domains d
  where d.id = core.decode_id('dom', find_domain.id) and d.organisation_id = find_domain.organisation_id
    and d.change is distinct from 'adding'
  for no key update;
  if v_domain.id is null then
    perform core.refuse('not_found');
  end if;
  return v_domain;
end
$$;

comment on function core.find_domain is
  'Returns and locks an organisation''s domain with this ID. Refuses not_found.';
