create view ops.consents as
select core.encode_id('org', c.organisation_id) as organisation, c.phone, c.source, c.consented_at, c.opted_out_at, c.opted_out_by
from app.consents c;

comment on view ops.consents is 'Consents to marketing SMS, and opt-outs.';

comment on column ops.consents.organisation is 'The organisation''s ID, org_….';
comment on column ops.consents.phone is 'The number in E.164.';
comment on column ops.consents.source is 'Where and how the owner of the number agreed; null without consent.';
comment on column ops.consents.consented_at is 'When the owner of the number agreed; null without consent.';
comment on column ops.consents.opted_out_at is 'When the owner opted out; null if they have not, or have agreed again since.';
comment on column ops.consents.opted_out_by is
  'The keyword that the owner sent, or the operator or member of the organisation who opted the number out; null without an opt-out.';
