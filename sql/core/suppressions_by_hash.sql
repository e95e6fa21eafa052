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
$$;

comment on function core.suppressions_by_hash is
  'Returns the suppressions of an erased person (address in lower case, or number), of all organisations.';
