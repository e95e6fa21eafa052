create function ops.create_sign_in_link(email text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user app.users := core.find_user(create_sign_in_link.email);
  -- Two random UUIDs are 244 bits from the server's strong random source.
  v_token text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
begin
  perform core.create_sign_in_link(v_user.id, sha256(convert_to(v_token, 'UTF8')));
  perform core.audit('create_sign_in_link', null, v_user.email, null, jsonb_build_object('user', core.encode_id('usr', v_user.id)));
  return '/login/' || v_token;
end
$$;

comment on function ops.create_sign_in_link is
  'Return the path of a link that signs this user in to the dashboard, once within 15 minutes. Put the address of the service in front of it.';
