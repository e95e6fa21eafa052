create view ops.notices as
select n.id, core.encode_id('org', n.organisation_id) as organisation, o.owner_email as "to", n.kind, n.detail,
  n.created_at, n.attempts, n.sent_at, n.given_up_at, n.error_message as error
from app.notices n
join app.organisations o on o.id = n.organisation_id
order by n.id desc;

comment on view ops.notices is
  'Mail from the service to owners, newest first; error is what the provider said last, and one that it refused for good was given up.';
