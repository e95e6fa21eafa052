create function core.lock_organisations(ids uuid[])
returns void
language plpgsql volatile
as $$
begin
  perform from app.allowances a
  where a.organisation_id = any (ids)
  order by a.organisation_id
  for no key update;

  update app.allowances a
  set emails_used = 0, sms_used = 0, (period_start, period_end) = (select p.* from core.period_at(o.created_at, core.now()) p)
  from app.organisations o
  where a.organisation_id = any (ids)
    and a.period_end <= core.now()
    and o.id = a.organisation_id;
end
$$;

comment on function core.lock_organisations is
  'Serialise what is accepted for these organisations until commit, always in the order of their ids; opens the new period of one whose period ended.';
