create function core.domain_fails_at(d app.domains)
returns timestamptz
language sql stable
as $$
  select case
    when d.is_manually_verified then null
    when d.status = 'pending' then d.created_at + interval '72 hours'
    when d.status = 'verified' then d.wrong_since + interval '72 hours'
  end
$$;

comment on function core.domain_fails_at is
  'Returns when a pending domain, or a verified one whose records are wrong, fails unless its records are corrected; null for other domains.';
