create function core.sending_domains(organisation_id uuid, from_domain text)
returns setof app.domains
language sql stable
as $$
  select d.*
  from app.domains d
  where d.organisation_id = sending_domains.organisation_id
    and d.status = 'verified'
    and (from_domain = d.name or right(from_domain, length(d.name) + 1) = '.' || d.name)
$$;

comment on function core.sending_domains is
  'Returns the verified domains of an organisation that allow it to send from a domain (in lower case): the domain itself, and those above it.';
