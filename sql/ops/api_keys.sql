create view ops.api_keys as
select k.prefix, core.encode_id('org', k.organisation_id) as organisation, k.mode, k.scopes, k.created_at, k.revoked_at, k.last_used_on
from app.api_keys k;

comment on view ops.api_keys is
  'API keys by their first 16 characters. The key itself is shown only when it is created.';

comment on column ops.api_keys.prefix is 'The first 16 characters of the key, by which ops.revoke_api_key takes it.';
comment on column ops.api_keys.organisation is 'The organisation''s id, org_….';
comment on column ops.api_keys.mode is 'live or test.';
comment on column ops.api_keys.scopes is 'What the key may do.';
comment on column ops.api_keys.created_at is 'When it was made.';
comment on column ops.api_keys.revoked_at is 'Since when it is refused; null while it works.';
comment on column ops.api_keys.last_used_on is
  'UTC day of its last request; null if there was none. Keys made before this was recorded begin with the day of the upgrade.';
