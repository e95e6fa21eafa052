create function core.organisation_id(organisation text)
returns uuid
language plpgsql stable
as $$
declare
  v_id uuid := core.decode_id('org', organisation);
  v_ids uuid[] := array(
    select o.id from app.organisations o
    where (o.id = v_id or v_id is null and lower(o.name) = lower(organisation))
      and not exists (select from app.moved_organisations d where d.organisation_id = o.id));
begin
  perform core.check_is_one('organisation', organisation, array(
    select format('%s (%s)', core.encode_id('org', o.id), o.owner_email)
    from app.organisations o
    where o.id = any (v_ids)
    order by o.id), 'select id, name from ops.organisations');
  return v_ids[1];
end
$$;

comment on function core.organisation_id is
  'Returns the UUID of the organisation with this ID, or this name in any case. Raises an error if there is none, or several. Organisations that moved to another cell do not count.';
