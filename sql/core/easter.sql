create function core.easter(year integer)
returns date
language plpgsql immutable
as $$
declare
  -- The anonymous Gregorian computus (Nature, 20 April 1876), with its variable names.
  a integer := year % 19;
  b integer := year / 100;
  c integer := year % 100;
  h integer := (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
  l integer := (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7;
  m integer := (a + 11 * h + 22 * l) / 451;
  n integer := h + l - 7 * m + 114;
begin
  return make_date(year, n / 31, n % 31 + 1);
end
$$;

comment on function core.easter is 'Returns Easter Sunday of a year.';
