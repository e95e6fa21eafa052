create view ops.failing_providers as
select h.provider, h.failing_since, h.last_error
from app.provider_health h;

comment on view ops.failing_providers is 'Providers that take nothing at present, since when, and what they say.';
