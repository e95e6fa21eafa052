create function ops.remove_holiday(day date)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
begin
  delete from app.extra_holidays h where h.day = remove_holiday.day;
  if not found then
    raise exception '% is not a holiday that was added', coalesce(remove_holiday.day::text, 'null')
      using hint = 'select day, name from ops.holidays';
  end if;
end
$$;

comment on function ops.remove_holiday is 'Take back a public holiday that ops.add_holiday added.';
