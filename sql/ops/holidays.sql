create view ops.holidays as
select h.day, h.name
from generate_series(0, 1) next
cross join lateral core.public_holidays(
  extract(year from core.now() at time zone 'Africa/Johannesburg')::integer + next) h
order by h.day, h.name;

comment on view ops.holidays is
  'South Africa''s public holidays of this year and the next, as the statutory hours know them.';
