-- The service may call api and no other schema of Postgram.
revoke all on all functions in schema api from public;
grant usage on schema api to postgram_service;
grant execute on all functions in schema api to postgram_service;
