create function ops.remove_holiday(day date)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  delete from app.extra_holidays h where h.day = remove_holiday.day
  returning jsonb_build_object('name', h.name) into v_before;
  if not found then
    raise exception '% is not a holiday that ops.add_holiday added', coalesce(remove_holiday.day::text, 'null')
      using hint = 'select day, name from ops.holidays';
  end if;
  perform core.audit('remove_holiday', null, remove_holiday.day::text, v_before, null);
end
$$;

comment on function ops.remove_holiday is 'Remove a public holiday that ops.add_holiday added.';
