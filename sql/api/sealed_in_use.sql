create function api.sealed_in_use()
returns setof text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select k.private_key
  from app.sealing_keys k
  where exists (select from app.webhook_endpoints p where split_part(p.secret, '.', 1) = k.id::text)
  union all
  (select k.private_key from app.dkim_keys k where k.private_key is not null order by k.created_at desc limit 1)
$$;

comment on function api.sealed_in_use is
  'What is sealed with SECRET_KEY and needed to send: the keys to webhook secrets, and the newest DKIM key of a relay.';
