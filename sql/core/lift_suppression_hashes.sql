create function core.lift_suppression_hashes(person text, organisation_id uuid, reasons app.suppression_hash_reason[])
returns app.suppression_hash_reason[]
language plpgsql volatile
as $$
declare
  v_sha256 bytea := (select core.person_sha256(person, s.salt) from app.person_salt s);
  v_lifted app.suppression_hash_reason[] := '{}';
begin
  if lift_suppression_hashes.organisation_id is null then
    v_lifted := array(
      select a.reason from core.suppressions_by_hash(person) a where a.organisation_id is null and a.reason = any (reasons));
    perform core.remove_global_hashes(array[v_sha256], l.reason) from unnest(v_lifted) as l (reason);
  end if;
  with taken as (
    delete from app.suppression_hashes e
    where e.sha256 = v_sha256
      and (lift_suppression_hashes.organisation_id is null or e.organisation_id = lift_suppression_hashes.organisation_id)
      and e.reason = any (reasons)
    returning e.reason
  )
  select v_lifted || array_agg(t.reason) into v_lifted from taken t;
  return v_lifted;
end
$$;

comment on function core.lift_suppression_hashes is
  'Remove the hashed suppressions of an erased address or number, of one organisation, or of all and in all cells (null). Returns their reasons.';
