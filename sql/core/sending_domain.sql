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
  'Returns the domain of an organisation that an email from this sender domain is sent with: the nearest one that allows it. No row if none does.';
