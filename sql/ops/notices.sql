create view ops.notices as
select n.id, core.encode_id('org', n.organisation_id) as organisation, coalesce(n.email, o.owner_email) as "to",
  n.kind, n.detail - 'sealedToken' as detail,
  n.created_at, n.attempts, n.sent_at, n.failed_at, n.error_message as error
from app.notices n
left join app.organisations o on o.id = n.organisation_id
order by n.id desc;

comment on view ops.notices is
  'Notices: emails from the service to owners and to users of the dashboard, newest first. A notice that the provider refuses permanently is not retried.';

comment on column ops.notices.id is 'The ID of the notice.';
comment on column ops.notices.organisation is 'The organisation''s ID, org_…; null for a link that signs in.';
comment on column ops.notices."to" is 'The address of the owner or the user.';
comment on column ops.notices.kind is 'The kind of notice.';
comment on column ops.notices.detail is 'The values in its text.';
comment on column ops.notices.created_at is 'When the notice was created.';
comment on column ops.notices.attempts is 'Number of attempts to send it.';
comment on column ops.notices.sent_at is 'When a provider accepted it; null before that.';
comment on column ops.notices.failed_at is 'When it failed permanently because the provider refused it; null if it did not.';
comment on column ops.notices.error is 'The error of the last failed attempt; null if none failed.';
