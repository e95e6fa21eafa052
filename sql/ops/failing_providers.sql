create view ops.failing_providers as
select h.provider, h.failing_since, h.last_error
from core.failing_providers() h;

comment on view ops.failing_providers is
  'Providers that cannot be reached or refuse every message. A refusal of a single message or recipient does not count. The sandbox is never listed, because callers choose its refusals.';

comment on column ops.failing_providers.provider is 'The name of the provider.';
comment on column ops.failing_providers.failing_since is 'When the failures began; the provider has accepted no message since.';
comment on column ops.failing_providers.last_error is 'The last error: the provider''s text, or why it could not be reached.';
