create view ops.domain_records as
select
  core.encode_id('dom', d.id) as domain_id,
  d.name as domain,
  r.purpose,
  r.type,
  r.name,
  r.value,
  r.required,
  r.status,
  array(select jsonb_array_elements_text(r.found)) as found,
  d.last_checked_at,
  r.problem
from app.domains d
cross join lateral jsonb_to_recordset(d.records) as r (
  purpose text, type text, name text, value text, required boolean, status text, found jsonb, problem text
)
where d.change is distinct from 'adding';

comment on view ops.domain_records is
  'DNS records that each domain needs, with the result of the last check.';

comment on column ops.domain_records.domain_id is 'The domain''s ID, dom_….';
comment on column ops.domain_records.domain is 'The domain name.';
comment on column ops.domain_records.purpose is 'dkim, mail_from_mx, mail_from_spf or dmarc.';
comment on column ops.domain_records.type is 'CNAME, MX or TXT.';
comment on column ops.domain_records.name is 'The name of the record.';
comment on column ops.domain_records.value is 'The value to publish.';
comment on column ops.domain_records.required is 'Whether the domain needs this record to be verified.';
comment on column ops.domain_records.status is 'pending, verified, missing or mismatch, by the last check.';
comment on column ops.domain_records.found is 'The values that the last check found.';
comment on column ops.domain_records.last_checked_at is 'When the last check ran; null before the first one.';
comment on column ops.domain_records.problem is 'Why the last lookup failed, which leaves status and found as they were; null if it did not fail.';
