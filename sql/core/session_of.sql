create function core.session_of(session text, is_fresh boolean default false)
returns app.sessions
language plpgsql volatile
as $$
declare
  v_now timestamptz := core.now();
  v_session app.sessions := core.valid_session(session_of.session);
begin
  if v_session.id is null then
    perform core.refuse('unauthorized', words => 'Sign in first.');
  end if;
  if session_of.is_fresh and v_session.signed_in_at <= v_now - interval '10 minutes' then
    perform core.refuse('unauthorized', words => 'Sign in again: this needs a sign-in within the last 10 minutes.');
  end if;
  if v_session.seen_at < v_now - interval '1 minute' then
    update app.sessions s set seen_at = v_now where s.id = v_session.id;
  end if;
  perform set_config('postgram.user', (select u.email from app.users u where u.id = v_session.user_id), true);
  return v_session;
end
$$;

comment on function core.session_of is
  'Returns the session with this token hash (SHA-256 in hex), and names its user in the audit of this transaction. Refuses with unauthorized if there is none, if it has ended, or with is_fresh if its sign-in is older than 10 minutes.';
