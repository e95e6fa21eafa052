create function ops.add_holiday(day date, name text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_before jsonb := (select jsonb_build_object('name', h.name) from app.extra_holidays h where h.day = add_holiday.day);
begin
  if add_holiday.day is null or not isfinite(add_holiday.day) then
    raise exception 'give a day, like 2029-05-30';
  elsif coalesce(length(add_holiday.name), 0) not between 1 and 200 then
    raise exception 'the name must be 1 to 200 characters';
  end if;
  insert into app.extra_holidays (day, name)
  values (add_holiday.day, add_holiday.name)
  on conflict (day) do update set name = excluded.name;
  perform core.audit('add_holiday', null, add_holiday.day::text, v_before, jsonb_build_object('name', add_holiday.name));
end
$$;

comment on function ops.add_holiday is
  'Add a public holiday that was proclaimed for one day, as those of elections are; it counts where marketing keeps to the statutory hours.';
