create function core.limit_sign_in_requests(subject text, maximum integer)
returns void
language plpgsql volatile
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_sha256 bytea := sha256(convert_to(limit_sign_in_requests.subject, 'UTF8'));
  v_oldest timestamptz;
  v_requests integer;
begin
  -- Requests of one subject wait for each other, so that many at once cannot exceed the limit.
  perform pg_advisory_xact_lock(hashtextextended('sign_in ' || limit_sign_in_requests.subject, 0));
  delete from app.sign_in_requests r where r.requested_at < v_now - interval '15 minutes';
  select count(*), min(r.requested_at) into v_requests, v_oldest
  from app.sign_in_requests r
  where r.sha256 = v_sha256;
  if v_requests >= limit_sign_in_requests.maximum then
    perform core.refuse('rate_limited', words => 'Too many links were requested. Use the link of the last email, or try again later.',
      retry_after => greatest(1, ceil(extract(epoch from v_oldest + interval '15 minutes' - v_now)))::integer);
  end if;
  insert into app.sign_in_requests (sha256, requested_at) values (v_sha256, v_now);
end
$$;

comment on function core.limit_sign_in_requests is
  'Counts a request for a link by an address or a client. Refuses with rate_limited if there were as many within the last 15 minutes.';
