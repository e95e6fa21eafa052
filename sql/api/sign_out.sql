create function api.sign_out(session text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from app.sessions s where s.sha256 = decode(sign_out.session, 'hex')
$$;

comment on function api.sign_out is 'End the session with this token hash (SHA-256 in hex).';
