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

comment on view ops.domains is
  'Sending domains: status, what is wrong in DNS, next check. Shows the required records that the last check did not find as they should be, and since when those of a verified domain are wrong.';

comment on column ops.domains.id is 'The domain''s id, dom_….';
comment on column ops.domains.organisation is 'The organisation that holds it, org_…; null once ops.release_domain released it and the provider has it still.';
comment on column ops.domains.name is 'The domain.';
comment on column ops.domains.status is 'pending, verified or failed.';
comment on column ops.domains.not_found is 'Required records that the last check did not find as they should be: type, name and status of each.';
comment on column ops.domains.is_manually_verified is 'Whether ops.verify_domain verified it, which checks do not take back.';
comment on column ops.domains.provider is 'The email provider that has made its identity; null when none has yet.';
comment on column ops.domains.verified_at is 'When it was verified; null if it never was.';
comment on column ops.domains.wrong_since is 'Since when records of a verified one are wrong; after 72 hours it fails. Null while they are right.';
comment on column ops.domains.last_checked_at is 'When it was last checked; null before the first time.';
comment on column ops.domains.next_check_at is 'When it is checked next.';
comment on column ops.domains.created_at is 'When it was added.';
