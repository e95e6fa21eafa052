create view ops.key_map as
select k.prefix as key, 'cell' || c.number as backend, core.encode_id('org', k.organisation_id) as organisation
from app.api_keys k
cross join app.cell c
where k.revoked_at is null
  and coalesce(substring(k.prefix from '^sk_(?:live|test)_([a-z])_'), 'a') <> c.letter;

comment on view ops.key_map is
  'The API keys of this cell that do not have its letter, because their organisations came by a division: lines for a router.';

comment on column ops.key_map.key is 'The first 16 characters of the key.';
comment on column ops.key_map.backend is 'The name of this cell in the router: cell and its number.';
comment on column ops.key_map.organisation is 'The organisation''s ID, org_….';
