-- The planner folds the case to now() where there is no test clock. The body is parsed here, not by each
-- caller: views call it in the name of readers, who may not look into schema core.
create function core.now()
returns timestamptz
language sql stable
return case
  when not core.has_test_clock() then now()
  else coalesce(
    nullif(current_setting('postgram.now', true), '')::timestamptz,
    now() + coalesce(nullif(current_setting('postgram.shift', true), '')::interval, interval '0'))
end;

comment on function core.now is
  'The service''s clock: the time at which the transaction began. With a test clock, POSTGRAM_NOW of the connection fixes or shifts it.';
