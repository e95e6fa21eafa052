create view ops.domains_at_risk as
select core.encode_id('dom', d.id) as id, core.encode_id('org', d.organisation_id) as organisation, d.name, d.status,
  coalesce(d.wrong_since, d.created_at) as since,
  coalesce(d.wrong_since, d.created_at) + interval '72 hours' as fails_at,
  core.wrong_records(d.records) as not_found, d.last_checked_at
from app.domains d
where d.change is distinct from 'adding' and not d.is_vouched
  and (d.status = 'verified' and d.wrong_since is not null or d.status = 'pending')
order by fails_at;

comment on view ops.domains_at_risk is
  'Domains that will go to failed unless their records are put right: verified ones whose records are gone, and pending ones, with the time at which their 72 hours are over.';
