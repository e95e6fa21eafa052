-- The service may call api and nothing else of ours (design section 4).
revoke all on all functions in schema api from public;
grant usage on schema api to postgram_service;
grant execute on all functions in schema api to postgram_service;
