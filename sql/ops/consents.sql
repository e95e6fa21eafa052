create view ops.consents as
select core.encode_id('org', c.organisation_id) as organisation, c.phone, c.source, c.consented_at, c.opted_out_at, c.opted_out_by
from app.consents c;

comment on view ops.consents is 'Who agreed to marketing by SMS, where and how, and who opted out of it.';
