create function core.valid_session(session text)
returns app.sessions
language plpgsql stable
as $$
declare
  v_now timestamptz := core.now();
  v_session app.sessions;
begin
  select s.* into v_session
  from app.sessions s
  where s.sha256 = decode(valid_session.session, 'hex')
    and s.seen_at > v_now - interval '12 hours'
    and s.signed_in_at > v_now - interval '30 days';
  return v_session;
end
$$;

comment on function core.valid_session is
  'Returns the session with this token hash (SHA-256 in hex) without noting a request; nulls if there is none or it has ended.';
