create view ops.domains_at_risk as
select core.encode_id('dom', d.id) as id, core.encode_id('org', d.organisation_id) as organisation, d.name, d.status,
  coalesce(d.wrong_since, d.created_at) as since,
  coalesce(d.wrong_since, d.created_at) + interval '72 hours' as fails_at,
  core.wrong_records(d.records) as not_found, d.last_checked_at
from app.domains d
where d.change is distinct from 'adding' and not d.is_manually_verified
  and (d.status = 'verified' and d.wrong_since is not null or d.status = 'pending')
order by fails_at;

comment on view ops.domains_at_risk is
  'Domains that fail within 72 hours unless their DNS records are corrected. Lists pending domains, and verified domains whose records are wrong.';

comment on column ops.domains_at_risk.id is 'The domain''s ID, dom_….';
comment on column ops.domains_at_risk.organisation is 'The organisation that holds the domain, org_….';
comment on column ops.domains_at_risk.name is 'The domain name.';
comment on column ops.domains_at_risk.status is 'pending or verified.';
comment on column ops.domains_at_risk.not_found is
  'Required records that the last check did not find: type, name and status of each.';
comment on column ops.domains_at_risk.since is 'Since when a verified domain has wrong records; when a pending domain was added.';
comment on column ops.domains_at_risk.fails_at is 'When the status becomes failed: 72 hours after since.';
comment on column ops.domains_at_risk.last_checked_at is 'When the domain was last checked; null before the first check.';
