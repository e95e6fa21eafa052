create function ops.sign_out(email text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user app.users := core.find_user(sign_out.email);
  v_sessions integer;
begin
  delete from app.sign_in_links l where l.user_id = v_user.id;
  delete from app.sessions s where s.user_id = v_user.id;
  get diagnostics v_sessions = row_count;
  perform core.audit('sign_out', null, v_user.email, jsonb_build_object('sessions', v_sessions), null);
  return v_sessions;
end
$$;

comment on function ops.sign_out is
  'End all sessions of a person in the dashboard, and void the links that were emailed. Returns the number of sessions.';
