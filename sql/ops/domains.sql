create view ops.domains as
select
  core.encode_id('dom', d.id) as id,
  core.encode_id('org', d.organisation_id) as organisation,
  d.name,
  d.status,
  core.wrong_records(d.records) as not_found,
  d.is_vouched,
  d.provider,
  d.verified_at,
  d.wrong_since,
  d.last_checked_at,
  d.next_check_at,
  d.created_at
from app.domains d
where d.change is distinct from 'adding';

comment on view ops.domains is
  'Sending domains and their states: required records that the last check did not find as they should be, since when those of a verified domain are wrong, and when it is checked next.';
