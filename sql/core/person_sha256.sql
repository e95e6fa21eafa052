create function core.person_sha256(person text, salt bytea)
returns bytea
language sql immutable
as $$
  select sha256(salt || convert_to(person, 'UTF8'))
$$;

comment on function core.person_sha256 is
  'Returns the hash under which an erased person (address in lower case, or number) is stored. salt is that of app.person_salt.';
