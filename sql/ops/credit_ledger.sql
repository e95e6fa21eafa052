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
  'Every movement of SMS segments, organisation by organisation, of each the newest first: prepaid credits and segments that the plan includes, given (positive) or taken, and the credits after it. Name an organisation, and a limit.';
