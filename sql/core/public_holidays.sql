create function core.public_holidays(year integer)
returns table (day date, name text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with by_law (day, name) as (
    select make_date(public_holidays.year, f.month, f.day), f.name
    from (values
      (1, 1, 'New Year''s Day'),
      (3, 21, 'Human Rights Day'),
      (4, 27, 'Freedom Day'),
      (5, 1, 'Workers'' Day'),
      (6, 16, 'Youth Day'),
      (8, 9, 'National Women''s Day'),
      (9, 24, 'Heritage Day'),
      (12, 16, 'Day of Reconciliation'),
      (12, 25, 'Christmas Day'),
      (12, 26, 'Day of Goodwill')
    ) f (month, day, name)
    union all
    select core.easter(public_holidays.year) - 2, 'Good Friday'
    union all
    select core.easter(public_holidays.year) + 1, 'Family Day'
  )
  select l.day, l.name from by_law l
  union all
  select l.day + 1, l.name || ' fell on a Sunday' from by_law l where extract(isodow from l.day) = 7
  union all
  select e.day, e.name from app.extra_holidays e
  where e.day between make_date(public_holidays.year, 1, 1) and make_date(public_holidays.year, 12, 31)
$$;

comment on function core.public_holidays is
  'Returns South Africa''s public holidays of a year: those of the Public Holidays Act 36 of 1994, the Monday after one that falls on a Sunday, and those that were added.';
