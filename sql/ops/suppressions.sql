create view ops.suppressions as
select core.encode_id('sup', s.id) as id, core.encode_id('org', o.id) as organisation, o.name as organisation_name,
  s.email, s.reason, core.encode_id('em', s.message_id) as message, s.note, s.created_at
from app.organisations o
-- Organisations come first in the join, so that their entries are found by the key.
join app.suppressions s on s.organisation_id = o.id
union all
select null, null, null, b.email, 'hard_bounce', core.encode_id('em', b.message_id), b.note, b.created_at
from app.hard_bounces b
where b.removed_at is null
  and not exists (
    select from app.hard_bounces n
    where n.email = b.email and (coalesce(n.removed_at, n.created_at), n.cell) > (b.created_at, b.cell));

comment on view ops.suppressions is
  'Suppressed email addresses, with the reason of each. An entry without an organisation is global and applies to all. A hard bounce creates two entries: a global one and one of the organisation. Suppressions of erased people are stored as hashes and not listed.';

comment on column ops.suppressions.id is 'The ID that the API shows, sup_…; null for a global entry.';
comment on column ops.suppressions.organisation is 'The organisation''s ID, org_…; null for a global entry.';
comment on column ops.suppressions.organisation_name is 'The organisation''s name; null for a global entry.';
comment on column ops.suppressions.email is 'The address in lower case.';
comment on column ops.suppressions.reason is
  'hard_bounce, complaint, unsubscribe (blocks marketing only) or manual. Global entries are hard bounces.';
comment on column ops.suppressions.message is 'The message that caused the entry, em_…; null for entries added by hand.';
comment on column ops.suppressions.note is 'The note of the caller or operator.';
comment on column ops.suppressions.created_at is 'When the address was suppressed.';
