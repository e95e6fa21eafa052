create function api.is_sign_in_link(token_sha256 text)
returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from app.sign_in_links l
    where l.sha256 = decode(is_sign_in_link.token_sha256, 'hex') and l.used_at is null and l.expires_at > core.now())
$$;

comment on function api.is_sign_in_link is
  'Returns whether a link with this token (SHA-256 in hex) can still sign in.';
