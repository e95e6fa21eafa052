create view ops.failing_providers as
select h.provider, h.failing_since, h.last_error
from app.provider_health h;

comment on view ops.failing_providers is
  'Providers that take nothing at present, and what they say. The sandbox is never listed: callers choose its refusals.';

comment on column ops.failing_providers.provider is 'The provider.';
comment on column ops.failing_providers.failing_since is 'Since when it takes nothing.';
comment on column ops.failing_providers.last_error is 'What it said last.';
