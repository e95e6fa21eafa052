create view ops.credit_ledger as
select
  core.encode_id('org', l.organisation_id) as organisation,
  l.id,
  l.kind,
  l.credits,
  l.included,
  l.balance,
  core.encode_id('sm', l.message_id) as message,
  l.note,
  l.created_at,
  l.period_start
from app.credit_ledger l
-- As its key is, backwards.
order by l.organisation_id desc, l.id desc;

comment on view ops.credit_ledger is
  'Every movement of SMS segments, newest first for each organisation: prepaid credits and segments that the plan includes, given (positive) or taken, and the credits after it.';
