create view ops.senders as
select core.encode_id('org', s.organisation_id) as organisation, s.sender, s.approved_at
from app.senders s;

comment on view ops.senders is 'The sender IDs that organisations may use beside the shared one.';
