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
  'Domains that fail soon unless their DNS records are corrected. Verified ones whose records are gone and pending ones, with the time at which their 72 hours end.';

comment on column ops.domains_at_risk.id is 'The domain''s id, dom_….';
comment on column ops.domains_at_risk.organisation is 'The organisation that holds it, org_….';
comment on column ops.domains_at_risk.name is 'The domain.';
comment on column ops.domains_at_risk.status is 'pending, verified or failed.';
comment on column ops.domains_at_risk.not_found is 'Required records that the last check did not find as they should be: type, name and status of each.';
comment on column ops.domains_at_risk.since is 'Since when its records are wrong, or it waits for them.';
comment on column ops.domains_at_risk.fails_at is 'When it goes to failed: 72 hours after that.';
comment on column ops.domains_at_risk.last_checked_at is 'When it was last checked; null before the first time.';
