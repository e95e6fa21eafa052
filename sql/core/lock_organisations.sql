create function core.lock_organisations(ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  perform from app.allowances a
  where a.organisation_id = any (ids)
  order by a.organisation_id
  for no key update;

  if exists (
    select from app.allowances a where a.organisation_id = any (ids) and a.period_end <= core.now()
  ) then
    perform core.close_periods(ids);
  end if;
end
$$;

comment on function core.lock_organisations is
  'Serialise what is accepted for these organisations until commit, always in the order of their ids; opens the new period of one whose period ended.';
