create view ops.audit_seals as
select s.id, s.sealed_at, s.rows, encode(s.sha256, 'hex') as sha256
from app.audit_seals s;

comment on view ops.audit_seals is
  'Seals that show whether the audit was changed. Each covers the rows of about a minute and the seal before it; ops.checks says whether they still fit. Keep the newest outside of the database: it shows whether somebody with the owner''s rights made all of them again.';

comment on column ops.audit_seals.id is 'Its number, from 1 without gaps.';
comment on column ops.audit_seals.sealed_at is 'When its rows were sealed.';
comment on column ops.audit_seals.rows is 'How many rows of ops.audit it covers.';
comment on column ops.audit_seals.sha256 is 'SHA-256 over its rows and the seal before it, in hexadecimal.';
