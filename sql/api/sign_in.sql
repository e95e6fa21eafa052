create function api.sign_in(token_sha256 text, session_sha256 text, client text, former_session text default null)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := core.now();
  v_user uuid;
begin
  update app.sign_in_links l
  set used_at = v_now
  where l.sha256 = decode(sign_in.token_sha256, 'hex') and l.used_at is null and l.expires_at > v_now
  returning l.user_id into v_user;
  if v_user is null then
    return false;
  end if;
  delete from app.sessions s
  where s.sha256 = decode(sign_in.former_session, 'hex')
    or s.seen_at <= v_now - interval '12 hours' or s.signed_in_at <= v_now - interval '30 days';
  insert into app.sessions (id, sha256, user_id, client, signed_in_at, seen_at)
  values (core.new_id(v_now), decode(sign_in.session_sha256, 'hex'), v_user, left(sign_in.client, 300), v_now, v_now);
  return true;
end
$$;

comment on function api.sign_in is
  'Use a link: store a session of its user with the SHA-256 of the session''s token in hex. client: the User-Agent; former_session: the token hash of the session that the browser had, which ends. Returns false if the link was used, has expired or does not exist.';
