create function core.suppressions_by_hash(person text)
returns setof app.suppression_hashes
language sql stable
as $$
  select e.*
  from app.suppression_hashes e
  -- core.person_sha256 inlined by hand: Postgres would not inline it, but call it for each recipient.
  where e.sha256 = sha256((select s.salt from app.person_salt s) || convert_to(person, 'UTF8'))
    -- Runs once for each statement: if no person was ever erased, nothing is hashed.
    and (select exists (select from app.suppression_hashes))
  union all
  select g.sha256, null, g.reason, g.erased_at
  from app.global_suppression_hashes g
  where g.sha256 = sha256((select s.salt from app.person_salt s) || convert_to(person, 'UTF8'))
    and (select exists (select from app.global_suppression_hashes))
    and g.removed_at is null
    and not exists (
      select from app.global_suppression_hashes n
      where n.sha256 = g.sha256 and n.reason = g.reason
        and (coalesce(n.removed_at, n.erased_at), n.cell) > (g.erased_at, g.cell))
$$;

comment on function core.suppressions_by_hash is
  'Returns the suppressions of an erased person (address in lower case, or number), of all organisations. organisation_id is null for a suppression that applies to all of them.';
