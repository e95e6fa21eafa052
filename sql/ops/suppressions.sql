create view ops.suppressions as
select core.encode_id('sup', s.id) as id, core.encode_id('org', o.id) as organisation, o.name as organisation_name,
  s.email, s.reason, core.encode_id('em', s.message_id) as message, s.note, s.created_at
from app.organisations o
-- An organisation is found first, and its entries by their key.
join app.suppressions s on s.organisation_id = o.id
union all
select null, null, null, b.email, 'hard_bounce', core.encode_id('em', b.message_id), b.note, b.created_at
from app.hard_bounces b;

comment on view ops.suppressions is
  'Addresses that must not be sent to, and why. An entry without an organisation is global and holds for all of them; after a hard bounce there are two, the global one and the organisation''s own. People whose data was erased are kept by hash and not listed.';

comment on column ops.suppressions.id is 'The id that the API shows, sup_…; null for a global entry.';
comment on column ops.suppressions.organisation is 'The organisation''s id, org_…; null for a global entry.';
comment on column ops.suppressions.organisation_name is 'The name of the organisation; null for a global entry.';
comment on column ops.suppressions.email is 'The address, in lower case.';
comment on column ops.suppressions.reason is 'hard_bounce, complaint, unsubscribe (marketing only) or manual. Global entries are hard bounces.';
comment on column ops.suppressions.message is 'The message that caused it, em_…; null if none did, as for entries made by hand.';
comment on column ops.suppressions.note is 'What the caller or the operator noted.';
comment on column ops.suppressions.created_at is 'When the address was suppressed.';
