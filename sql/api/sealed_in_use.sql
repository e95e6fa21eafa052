create function api.sealed_in_use()
returns setof text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  (select distinct on (e.secret_sealed_by) e.secret
  from app.webhook_endpoints e
  where e.secret_sealed_by is not null
  order by e.secret_sealed_by)
  union all
  (select k.private_key from app.dkim_keys k where k.private_key is not null order by k.created_at desc limit 1)
$$;

comment on function api.sealed_in_use is
  'Returns texts that SECRET_KEY must open for the worker to send: one signing secret for each key that sealed some, and the newest DKIM key of a relay.';
