-- The sandbox refuses messages because callers ask for that; its health is no longer recorded.
delete from app.provider_health where provider = 'sandbox';
