create function api.close_periods()
returns integer
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  -- Limited, so that few organisations are locked at a time; the caller repeats the call.
  select core.close_periods(array(
    select a.organisation_id
    from app.allowances a
    where a.period_end <= core.now()
    order by a.organisation_id
    limit 500
    for no key update skip locked))
$$;

comment on function api.close_periods is
  'Close the billing periods that have ended, of at most 500 organisations. The next send of an organisation also closes its period. Returns the number of periods closed.';
