create view ops.domains as
select
  core.encode_id('dom', d.id) as id,
  core.encode_id('org', d.organisation_id) as organisation,
  d.name,
  d.status,
  core.wrong_records(d.records) as not_found,
  d.is_manually_verified,
  d.provider,
  d.verified_at,
  d.wrong_since,
  d.last_checked_at,
  d.next_check_at,
  d.created_at
from app.domains d
where d.change is distinct from 'adding';

comment on view ops.domains is 'Sending domains, with their status and missing DNS records.';

comment on column ops.domains.id is 'The domain''s ID, dom_….';
comment on column ops.domains.organisation is
  'The organisation that holds the domain, org_…; null after ops.release_domain until the provider has removed the domain.';
comment on column ops.domains.name is 'The domain name.';
comment on column ops.domains.status is 'pending, verified or failed.';
comment on column ops.domains.not_found is 'Required records that the last check did not find: type, name and status of each.';
comment on column ops.domains.is_manually_verified is
  'Whether ops.verify_domain verified the domain; checks then never set it to failed.';
comment on column ops.domains.provider is 'The email provider that created the identity of the domain; null before that.';
comment on column ops.domains.verified_at is 'When the domain was verified; null if it never was.';
comment on column ops.domains.wrong_since is
  'Since when required records of a verified domain are wrong; after 72 hours the domain fails. Null while they are correct.';
comment on column ops.domains.last_checked_at is 'When the domain was last checked; null before the first check.';
comment on column ops.domains.next_check_at is 'When the next check is due.';
comment on column ops.domains.created_at is 'When the domain was added.';
