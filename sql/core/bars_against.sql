create function core.bars_against(person text)
returns setof app.erased_people
language sql stable
as $$
  select e.*
  from app.erased_people e
  -- core.person_sha256, written out as Postgres would call it for each recipient instead of merging it.
  where e.sha256 = sha256((select s.salt from app.person_salt s) || convert_to(person, 'UTF8'))
    -- Asked once for a whole statement: where nobody was ever erased, nothing is hashed.
    and (select exists (select from app.erased_people))
$$;

comment on function core.bars_against is
  'What stands against an address, in lower case, or a number since its owner was erased, for any organisation.';
