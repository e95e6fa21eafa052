create function core.try_lock_organisations(ids uuid[])
returns uuid[]
language plpgsql volatile
as $$
declare
  v_locked uuid[] := array(
    select a.organisation_id
    from app.allowances a
    where a.organisation_id = any (ids)
    order by a.organisation_id
    for no key update skip locked
  );
begin
  perform core.open_periods(v_locked);
  return v_locked;
end
$$;

comment on function core.try_lock_organisations is
  'Lock the organisations that no other transaction has locked, without waiting, and return their UUIDs. Otherwise the same as core.lock_organisations.';
