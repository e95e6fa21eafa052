create view ops.credit_ledger as
select
  core.encode_id('org', o.id) as organisation,
  l.id,
  l.kind,
  l.credits,
  l.included,
  l.balance,
  core.encode_id('sm', l.message_id) as message,
  l.note,
  l.created_at,
  l.period_start
from app.organisations o
-- Ordered within each organisation, so that the key finds its rows however many others there are.
cross join lateral (
  select l.*
  from app.credit_ledger l
  where l.organisation_id = o.id
  order by l.id desc
) l;

comment on view ops.credit_ledger is
  'All movements of prepaid SMS credits and of included segments. Within each organisation the newest movement comes first. Positive amounts are given, negative amounts are taken. Always filter by organisation and add a limit.';

comment on column ops.credit_ledger.organisation is 'The organisation''s ID, org_….';
comment on column ops.credit_ledger.id is 'Sequence number; higher is newer.';
comment on column ops.credit_ledger.kind is 'grant, sms (payment for a message) or refund.';
comment on column ops.credit_ledger.credits is 'Prepaid segments given; negative if taken.';
comment on column ops.credit_ledger.included is 'Segments of the plan given back; negative if taken.';
comment on column ops.credit_ledger.balance is 'Prepaid segments left after this movement.';
comment on column ops.credit_ledger.message is 'The SMS, sm_…; null for a grant.';
comment on column ops.credit_ledger.note is 'The note given to ops.grant_credits.';
comment on column ops.credit_ledger.created_at is 'When the movement happened.';
comment on column ops.credit_ledger.period_start is 'Start of the billing period that the movement belongs to.';
