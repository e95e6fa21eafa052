create function api.store_sealing_key(modulus text, private_key text, newest uuid default null)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('postgram sealing keys', 0));
  -- Of processes that start together the first one's is kept.
  if newest is distinct from (select k.id from app.sealing_keys k order by k.created_at desc, k.id desc limit 1) then
    return false;
  end if;
  insert into app.sealing_keys (id, modulus, private_key, created_at)
  values (core.new_id(clock_timestamp()), modulus::numeric, private_key, clock_timestamp());
  return true;
end
$$;

comment on function api.store_sealing_key is
  'Keep a key for sealing secrets from now on, if the newest is still the one that the caller saw (left out: none); modulus in decimal. Answers whether it was kept.';
