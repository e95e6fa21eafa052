-- Without a test clock the planner reduces this to now(). The body is parsed when the function is created,
-- because views call it for readers without rights on schema core.
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
  'Returns the time at which the transaction began, by the service''s clock. With a test clock, POSTGRAM_NOW of the connection fixes or shifts it.';
