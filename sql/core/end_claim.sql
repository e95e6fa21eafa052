create function core.end_claim(d app.domains)
returns void
language sql volatile
as $$
  insert into app.domain_claims (name, organisation_id, barred_until)
  select d.name, d.organisation_id, core.now() + interval '7 days'
  where d.organisation_id is not null and d.status <> 'verified'
    and exists (
      select from app.domain_claims c
      where c.name = d.name and c.organisation_id <> d.organisation_id and c.asked_at >= d.created_at)
  on conflict on constraint domain_claims_pkey do update set barred_until = excluded.barred_until
$$;

comment on function core.end_claim is
  'Record that a claim to a domain ended without verification. If another organisation asked for the name in the meantime, this one cannot claim it again for 7 days.';
