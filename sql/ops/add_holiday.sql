create function ops.add_holiday(day date, name text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb := (select jsonb_build_object('name', h.name) from app.extra_holidays h where h.day = add_holiday.day);
begin
  if add_holiday.day is null or add_holiday.day not between '2000-01-01' and '2999-12-31' then
    raise exception 'the day must be from 2000-01-01 to 2999-12-31, such as 2029-05-30';
  end if;
  perform core.check_name(add_holiday.name);
  insert into app.extra_holidays (day, name)
  values (add_holiday.day, add_holiday.name)
  on conflict on constraint extra_holidays_pkey do update set name = excluded.name;
  perform core.audit('add_holiday', null, add_holiday.day::text, v_before, jsonb_build_object('name', add_holiday.name));
end
$$;

comment on function ops.add_holiday is
  'Add a public holiday that was proclaimed for one day, such as an election. It counts if marketing SMS keep to the statutory hours (ops.set_marketing_hours). A second call for the same day changes the name.';
