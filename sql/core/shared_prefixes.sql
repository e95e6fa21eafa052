create function core.shared_prefixes(organisation_ids uuid[])
returns text[]
language sql stable
as $$
  select array(
    select k.prefix
    from app.api_keys k
    where k.revoked_at is null
    group by k.prefix
    having bool_or(k.organisation_id = any (organisation_ids))
      and bool_or(k.organisation_id <> all (organisation_ids))
    order by k.prefix)
$$;

comment on function core.shared_prefixes is
  'Returns the beginnings of API keys that one of these organisations has and another organisation, too. A router cannot tell such keys apart (ops.key_map).';
