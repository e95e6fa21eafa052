create function core.sending_domain(organisation_id uuid, from_domain text)
returns setof app.domains
language sql stable
as $$
  select d.*
  from core.sending_domains(sending_domain.organisation_id, sending_domain.from_domain) d
  -- Of one below another, its own.
  order by length(d.name) desc
  limit 1
$$;

comment on function core.sending_domain is
  'The domain of an organisation that an email from such an address is sent from: the nearest of those that allow it; no row when none does.';
