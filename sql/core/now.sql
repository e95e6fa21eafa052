create function core.now()
returns timestamptz
language sql stable
as $$
  select coalesce(
    nullif(current_setting('postgram.now', true), '')::timestamptz,
    now() + coalesce(nullif(current_setting('postgram.shift', true), '')::interval, interval '0')
  )
$$;

comment on function core.now is
  'The service''s clock: the transaction''s time, unless POSTGRAM_NOW fixed or shifted it on this connection.';
