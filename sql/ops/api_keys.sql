create view ops.api_keys as
select k.prefix, core.encode_id('org', k.organisation_id) as organisation, k.mode, k.scopes, k.created_at, k.revoked_at
from app.api_keys k;

comment on view ops.api_keys is 'Keys by their prefixes; a key itself is shown only when it is made.';
