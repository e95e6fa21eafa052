create view ops.notices as
select n.id, core.encode_id('org', n.organisation_id) as organisation, o.owner_email as "to", n.kind, n.detail,
  n.created_at, n.attempts, n.sent_at, n.failed_at, n.error_message as error
from app.notices n
join app.organisations o on o.id = n.organisation_id
order by n.id desc;

comment on view ops.notices is
  'Mail from the service to owners, newest first. error is what the provider said last; a mail that it refused for good was given up.';

comment on column ops.notices.id is 'Counts up: the higher, the newer.';
comment on column ops.notices.organisation is 'The organisation''s id, org_….';
comment on column ops.notices."to" is 'The owner''s address.';
comment on column ops.notices.kind is 'What it tells.';
comment on column ops.notices.detail is 'What it fills its text with.';
comment on column ops.notices.created_at is 'Since when it is to be sent.';
comment on column ops.notices.attempts is 'How often it was tried.';
comment on column ops.notices.sent_at is 'When it was sent; null until then.';
comment on column ops.notices.failed_at is 'When it was given up, as it was refused for good; null if it was not.';
comment on column ops.notices.error is 'What the provider said last; null when nothing was wrong.';
