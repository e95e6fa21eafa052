create function core.open_periods(ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  if exists (
    select from app.allowances a where a.organisation_id = any (ids) and a.period_end <= core.now()
  ) then
    perform core.close_periods(ids);
  end if;
end
$$;

comment on function core.open_periods is
  'Open a new billing period for those organisations whose period has ended. The caller has locked them.';
