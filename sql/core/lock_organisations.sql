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
  'Lock the allowances of organisations until commit, in the order of their ids, which serialises what is accepted for them. Opens a new period where one has ended.';
