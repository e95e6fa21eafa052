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
  d.last_checked_at
from app.domains d
cross join lateral jsonb_to_recordset(d.records) as r (
  purpose text, type text, name text, value text, required boolean, status text, found jsonb
)
where d.change is distinct from 'adding';

comment on view ops.domain_records is
  'The DNS records that each sending domain''s holder is to publish, and what the last check found of them.';
