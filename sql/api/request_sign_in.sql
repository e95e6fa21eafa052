create function api.request_sign_in(email text, client_address text, token_sha256 text, sealed_token text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_email text := lower(request_sign_in.email);
  v_user uuid;
begin
  -- Lock order: the client, the client with the address, the address. One client alone cannot keep an address from links.
  perform core.limit_sign_in_requests('client ' || request_sign_in.client_address, 20);
  perform core.limit_sign_in_requests(format('client %s address %s', request_sign_in.client_address, v_email), 5);
  perform core.limit_sign_in_requests('address ' || v_email, 10);
  select u.id into v_user from app.users u where u.email = v_email;
  if v_user is null then
    return;
  end if;
  perform core.create_sign_in_link(v_user, decode(request_sign_in.token_sha256, 'hex'));
  perform core.notify_user(v_email, null, 'sign_in', jsonb_build_object('sealedToken', request_sign_in.sealed_token));
end
$$;

comment on function api.request_sign_in is
  'Email a link that signs in to the dashboard once within 15 minutes, if the address is that of a user. token_sha256: the SHA-256 of its token in hex; client_address: the IP address of the browser, of IPv6 its network; sealed_token: the token sealed with SECRET_KEY, for the email. Refuses with rate_limited after 20 requests of a client, 5 of a client for one address, or 10 for an address within 15 minutes, whether the address is known or not.';
