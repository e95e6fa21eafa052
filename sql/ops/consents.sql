create view ops.consents as
select core.encode_id('org', c.organisation_id) as organisation, c.phone, c.source, c.consented_at, c.opted_out_at, c.opted_out_by
from app.consents c;

comment on view ops.consents is
  'Who agreed to marketing SMS and who opted out. Shows where and how they agreed.';

comment on column ops.consents.organisation is 'The organisation''s id, org_….';
comment on column ops.consents.phone is 'The number, in E.164.';
comment on column ops.consents.source is 'Where and how its owner agreed; null if they never did.';
comment on column ops.consents.consented_at is 'When they agreed; null if they never did.';
comment on column ops.consents.opted_out_at is 'When they opted out; null while they have not, or have agreed since.';
comment on column ops.consents.opted_out_by is 'The word that they sent, or who withdrew it; null while they have not opted out.';
