create view ops.senders as
select core.encode_id('org', s.organisation_id) as organisation, s.sender, s.approved_at
from app.senders s;

comment on view ops.senders is 'Sender IDs that organisations may use besides the shared one.';

comment on column ops.senders.organisation is 'The organisation''s ID, org_….';
comment on column ops.senders.sender is 'Up to 11 letters, digits and spaces, or a number in E.164.';
comment on column ops.senders.approved_at is 'When the sender ID was approved.';
