create function core.schedule_interval(schedule text)
returns interval
language sql immutable
as $$
  select case
    when schedule = '* * * * *' then interval '1 minute'
    when schedule ~ '^\*/\d+ \* \* \* \*$' then make_interval(mins => substring(schedule from '\d+')::integer)
    when schedule ~ '^\d+ \* \* \* \*$' then interval '1 hour'
    when schedule ~ '^\d+ \d+ \* \* \*$' then interval '1 day'
  end
$$;

comment on function core.schedule_interval is
  'Returns the interval of a cron schedule that runs every minute, every few minutes, hourly or daily; null for any other.';
