create view ops.holidays as
select h.day, h.name
from generate_series(0, 1) next
cross join lateral core.public_holidays(
  extract(year from core.now() at time zone 'Africa/Johannesburg')::integer + next) h
union
-- An added holiday is listed even if its year is later.
select e.day, e.name
from app.extra_holidays e
where e.day > (core.now() at time zone 'Africa/Johannesburg')::date
order by day, name;

comment on view ops.holidays is
  'Public holidays of this year and the next, for the statutory hours. Holidays that were added for later years are listed too.';

comment on column ops.holidays.day is 'The day in South Africa.';
comment on column ops.holidays.name is 'The name of the holiday.';
