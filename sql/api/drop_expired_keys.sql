create function api.drop_expired_keys()
returns integer
language plpgsql volatile security definer
set search_path = ''
set lock_timeout = '2s'
as $$
declare
  v_name text;
  v_dropped integer := 0;
begin
  for v_name in
    select c.relname
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'app.idempotency_keys'::regclass
      and c.relname < 'idempotency_keys' || to_char((core.now() - interval '3 days') at time zone 'UTC', '_YYYY_MM_DD')
  loop
    execute format('drop table app.%I', v_name);
    v_dropped := v_dropped + 1;
  end loop;
  return v_dropped;
end
$$;

comment on function api.drop_expired_keys is
  'Drop the days of idempotency keys that no request can replay any more (24 hours, interface 4.12). Answers how many days.';
