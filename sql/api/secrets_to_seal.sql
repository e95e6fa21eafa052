create function api.secrets_to_seal(key_ids text[])
returns setof api.secret_to_seal
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select e.id, s.secret, s.sealed_by is not null
  from app.webhook_endpoints e
  cross join lateral (
    values (e.secret, e.secret_sealed_by), (e.old_secret, e.old_secret_sealed_by)
  ) as s (secret, sealed_by)
  where s.secret is not null and (s.sealed_by is null or s.sealed_by = any (key_ids[2:]))
  order by e.id
  -- Their endpoints are locked together, and deliveries wait for that.
  limit 100
$$;

comment on function api.secrets_to_seal is
  'Returns at most 100 signing secrets that are not sealed yet, or were sealed by an older SECRET_KEY. key_ids: the identifiers of the keys in SECRET_KEY; the first one seals.';
