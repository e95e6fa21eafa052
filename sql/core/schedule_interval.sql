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
  'How often a task of the clock runs, from its cron: every minute, every so many minutes, every hour or every day; null for another.';
