create function core.begin_accept(
  calls jsonb, is_shared boolean, left_out integer[], out taken jsonb, out rounds integer
)
language plpgsql volatile
as $$
declare
  v_ids uuid[] := array(
    select distinct c.organisation_id from core.calls_of_round(calls) c where c.n <> all (coalesce(left_out, '{}'))
  );
  v_locked uuid[];
begin
  if is_shared then
    -- Without waiting: only those that no other transaction has locked.
    v_locked := array(
      select a.organisation_id
      from app.allowances a
      where a.organisation_id = any (v_ids)
      order by a.organisation_id
      for no key update skip locked);
    perform core.open_periods(v_locked);
  else
    perform core.lock_organisations(v_ids);
    v_locked := v_ids;
  end if;

  -- Nearly always every call is taken, and the JSON stays as it is.
  taken := calls;
  if left_out is not null or cardinality(v_locked) < cardinality(v_ids) then
    select coalesce(jsonb_agg(c.call), '[]') into taken
    from jsonb_array_elements(calls) as c (call)
    where (c.call ->> 'organisation_id')::uuid = any (v_locked)
      and (c.call ->> 'n')::integer <> all (coalesce(left_out, '{}'));
  end if;
  rounds := (select coalesce(max(c.round), 0) from core.calls_of_round(taken) c);
end
$$;

comment on function core.begin_accept is
  'Lock the organisations of the calls of an accept, of either channel. taken: the calls to judge, without those left out and, in a shared run, those whose organisation another transaction has locked. rounds: in how many rounds to judge them.';
