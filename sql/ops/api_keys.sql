create view ops.api_keys as
select k.prefix, core.encode_id('org', k.organisation_id) as organisation, k.mode, k.scopes, k.created_at, k.revoked_at, k.last_used_on
from app.api_keys k;

comment on view ops.api_keys is
  'API keys, by their first 16 characters. The whole key is shown only once, when it is created.';

comment on column ops.api_keys.prefix is 'The first 16 characters of the key; ops.revoke_api_key accepts them.';
comment on column ops.api_keys.organisation is 'The organisation''s ID, org_….';
comment on column ops.api_keys.mode is 'live or test.';
comment on column ops.api_keys.scopes is 'The scopes that the key grants.';
comment on column ops.api_keys.created_at is 'When the key was created.';
comment on column ops.api_keys.revoked_at is 'When the key was revoked; null while it is valid.';
comment on column ops.api_keys.last_used_on is 'UTC day of the key''s last request; null before the first one.';
