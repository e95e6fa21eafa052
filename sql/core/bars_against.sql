create function core.bars_against(person text)
returns setof app.erased_people
language sql stable
as $$
  select e.*
  from app.erased_people e
  where e.sha256 = core.person_sha256(person, (select s.salt from app.person_salt s))
    -- Asked once for a whole statement: where nobody was ever erased, nothing is hashed.
    and (select exists (select from app.erased_people))
$$;

comment on function core.bars_against is
  'What stands against an address, in lower case, or a number since its owner was erased, for any organisation.';
