create view ops.audit_seals as
select s.id, s.sealed_at, s.rows, encode(s.sha256, 'hex') as sha256
from app.audit_seals s;

comment on view ops.audit_seals is
  'Seals that reveal a changed or removed row of the audit. Each seal covers the rows of about a minute and the seal before it; ops.checks verifies them. Keep the newest seal outside the database: only that reveals whether someone with the owner''s rights recreated all of them.';

comment on column ops.audit_seals.id is 'Sequence number, from 1 without gaps.';
comment on column ops.audit_seals.sealed_at is 'When the rows were sealed.';
comment on column ops.audit_seals.rows is 'Number of rows of ops.audit that the seal covers.';
comment on column ops.audit_seals.sha256 is 'SHA-256 over the rows and the previous seal, in hexadecimal.';
