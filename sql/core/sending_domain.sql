create function core.sending_domain(organisation_id uuid, from_domain text)
returns setof app.domains
language sql stable
as $$
  select d.*
  from core.sending_domains(sending_domain.organisation_id, sending_domain.from_domain) d
  -- A subdomain with its own entry is preferred.
  order by length(d.name) desc
  limit 1
$$;

comment on function core.sending_domain is
  'Returns the one of core.sending_domains with which an organisation sends from a domain: the nearest. No row if there is none.';
