create function core.admit(keys text[])
returns setof core.admission
language plpgsql volatile
as $$
declare
  -- Real time, whatever POSTGRAM_NOW says: a limit on load is about the machine.
  v_now numeric := extract(epoch from clock_timestamp());
  v_second bigint := floor(v_now);
  v_today date := (core.now() at time zone 'UTC')::date;
begin
  -- Do not wait for the disk or for standbys at commit: all requests of the organisation would wait too. If a
  -- crash loses the day of a key's last use, the next request writes it again. Set until the commit, which a
  -- set clause of the function would not last to; the call is alone in its transaction.
  perform set_config('synchronous_commit', 'off', true);
  -- One statement, because the requests are counted for the keys that it finds. Locks request counts by
  -- organisation, and keys that no other transaction holds.
  return query
  with known as materialized (
    select p.n, k.id as key_id, k.last_used_on, k.organisation_id, k.mode, k.scopes, o.state,
      row_number() over (partition by k.organisation_id order by p.n) as place,
      count(*) over (partition by k.organisation_id) as requests
    from unnest(keys) with ordinality as p (sha256, n)
    join app.api_keys k on k.sha256 = decode(p.sha256, 'hex') and k.revoked_at is null
    join app.organisations o on o.id = k.organisation_id
  ),
  counted as (
    -- In the order of their ids, like all locks on organisations' rows. A transaction that waited may have a
    -- second that is past: it counts into the current one. A second more than ten minutes back means that
    -- the machine's clock was set back: counting starts again there.
    insert into app.request_counts as r (organisation_id, second, requests)
    select distinct k.organisation_id, v_second, k.requests
    from known k
    order by k.organisation_id
    on conflict (organisation_id) do update set
      requests = excluded.requests + case when excluded.second not between r.second - 600 and r.second then 0 else r.requests end,
      second = case when excluded.second not between r.second - 600 and r.second then excluded.second else r.second end
    returning r.organisation_id, r.requests
  ),
  used as (
    -- Once a day for each key. A key that another transaction holds is skipped.
    update app.api_keys k
    set last_used_on = v_today
    where k.id in (
      select l.id
      from app.api_keys l
      where l.id in (select n.key_id from known n where n.last_used_on is distinct from v_today)
      for no key update skip locked)
  )
  select k.n::integer, k.organisation_id, k.mode, k.scopes::text[], k.state, 100,
    greatest(0, 100 - (c.requests - k.requests + k.place))::integer,
    case when c.requests - k.requests + k.place > 100 then 1 end,
    case when c.requests - k.requests + k.place > 100 then ((v_second + 1 - v_now) * 1000)::integer end
  from known k
  join counted c on c.organisation_id = k.organisation_id;
end
$$;

comment on function core.admit is
  'Returns the admission of each of these keys (SHA-256 in hex); no row for a key that is unknown or revoked. Counts each request against the 100 per second of its organisation, and records the day of the key''s last use.';
