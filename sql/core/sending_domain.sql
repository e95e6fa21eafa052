create function core.sending_domain(organisation_id uuid, from_domain text)
returns setof app.domains
language sql stable
as $$
  select d.*
  from app.domains d
  where d.organisation_id = sending_domain.organisation_id
    and d.status = 'verified'
    and (from_domain = d.name or right(from_domain, length(d.name) + 1) = '.' || d.name)
  -- A subdomain with its own entry is preferred.
  order by length(d.name) desc
  limit 1
$$;

comment on function core.sending_domain is
  'Returns the verified domain of an organisation with which it sends from a domain (in lower case): the domain itself, or the nearest one above it. No row if there is none.';
