create function core.lock_organisations(ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  perform from app.allowances a
  where a.organisation_id = any (ids)
  order by a.organisation_id
  for no key update;
  perform core.open_periods(ids);
end
$$;

comment on function core.lock_organisations is
  'Serialise what is accepted for these organisations until commit, always in the order of their ids; opens the new period of one whose period ended.';
