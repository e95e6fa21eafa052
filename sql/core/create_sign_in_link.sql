create function core.create_sign_in_link(user_id uuid, token_sha256 bytea)
returns void
language sql volatile
as $$
  delete from app.sign_in_links l where l.expires_at < core.now() - interval '1 day';
  delete from app.notices n where n.kind = 'sign_in' and n.created_at < core.now() - interval '1 day';
  insert into app.sign_in_links (sha256, user_id, created_at, expires_at)
  values (create_sign_in_link.token_sha256, create_sign_in_link.user_id, core.now(), core.now() + interval '15 minutes')
$$;

comment on function core.create_sign_in_link is
  'Stores the SHA-256 of a token that signs the user in once within 15 minutes. Deletes links and their notices that expired a day ago.';
