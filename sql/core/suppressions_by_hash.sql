create function core.suppressions_by_hash(person text)
returns setof app.suppression_hashes
language sql stable
as $$
  select e.*
  from app.suppression_hashes e
  -- core.person_sha256, written out because Postgres would not inline it and call it for each recipient.
  where e.sha256 = sha256((select s.salt from app.person_salt s) || convert_to(person, 'UTF8'))
    -- Evaluated once for a whole statement: where nobody was ever erased, nothing is hashed.
    and (select exists (select from app.suppression_hashes))
$$;

comment on function core.suppressions_by_hash is
  'What forbids sending to an address, in lower case, or a number since its owner was erased, for any organisation.';
