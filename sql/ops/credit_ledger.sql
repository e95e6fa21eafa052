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
-- An organisation's own are found in this order by the key, however many there are of others.
cross join lateral (
  select l.*
  from app.credit_ledger l
  where l.organisation_id = o.id
  order by l.id desc
) l;

comment on view ops.credit_ledger is
  'Every movement of SMS credits and of segments that a plan includes. Organisation by organisation, of each the newest first, with the credits after it; positive is given, negative taken. Name an organisation, and a limit.';

comment on column ops.credit_ledger.organisation is 'The organisation''s id, org_….';
comment on column ops.credit_ledger.id is 'Counts up: the higher, the newer.';
comment on column ops.credit_ledger.kind is 'grant, sms (paid for a message) or refund.';
comment on column ops.credit_ledger.credits is 'Prepaid segments given, or taken as a negative number.';
comment on column ops.credit_ledger.included is 'The same of the segments that the plan includes.';
comment on column ops.credit_ledger.balance is 'Prepaid segments left after this.';
comment on column ops.credit_ledger.message is 'The SMS, sm_…; null for a grant.';
comment on column ops.credit_ledger.note is 'What ops.grant_credits was told.';
comment on column ops.credit_ledger.created_at is 'When it happened.';
comment on column ops.credit_ledger.period_start is 'Start of the billing period that it counts in.';
