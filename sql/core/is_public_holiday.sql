create function core.is_public_holiday(day date)
returns boolean
language sql stable
as $$
  select exists (
    select from core.public_holidays(extract(year from is_public_holiday.day)::integer) h
    where h.day = is_public_holiday.day)
$$;

comment on function core.is_public_holiday is 'Returns whether a day is a public holiday in South Africa.';
