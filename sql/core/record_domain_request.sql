create function core.record_domain_request(name text, organisation_id uuid)
returns void
language sql volatile
as $$
  insert into app.domain_claims as c (name, organisation_id, asked_at)
  values (record_domain_request.name, record_domain_request.organisation_id, core.now())
  on conflict on constraint domain_claims_pkey do update set asked_at = excluded.asked_at
    where c.asked_at is null or c.asked_at < core.now() - interval '1 hour'
$$;

comment on function core.record_domain_request is
  'Record that an organisation asked for a domain name that another one claims, at most once an hour.';
