create view ops.failing_providers as
select h.provider, h.failing_since, h.last_error
from core.failing_providers() h;

comment on view ops.failing_providers is
  'Providers that cannot be reached or refuse every message. Shows since when and what they say. A refused message or recipient does not count, nor does the sandbox: callers choose its refusals.';

comment on column ops.failing_providers.provider is 'The provider.';
comment on column ops.failing_providers.failing_since is 'When its failures began; no message was taken since.';
comment on column ops.failing_providers.last_error is 'What it said last, or why it could not be reached.';
