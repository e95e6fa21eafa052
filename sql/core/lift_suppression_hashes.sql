create function core.lift_suppression_hashes(person text, organisation_id uuid, reasons app.suppression_hash_reason[])
returns app.suppression_hash_reason[]
language sql volatile
as $$
  with taken as (
    delete from app.suppression_hashes e
    where e.sha256 = (select core.person_sha256(person, s.salt) from app.person_salt s)
      and (lift_suppression_hashes.organisation_id is null or e.organisation_id = lift_suppression_hashes.organisation_id)
      and e.reason = any (reasons)
    returning e.reason
  )
  select coalesce(array_agg(t.reason), '{}') from taken t
$$;

comment on function core.lift_suppression_hashes is
  'Remove the hashed suppressions of an erased address or number, of one organisation or of all (null). Returns their reasons.';
