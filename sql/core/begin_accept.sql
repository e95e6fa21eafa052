create function core.begin_accept(
  calls jsonb, is_shared boolean, left_out integer[], out taken jsonb, out turns integer
)
language plpgsql volatile
as $$
declare
  v_ids uuid[] := array(
    select distinct c.organisation_id from core.calls_of_round(calls) c where c.n <> all (coalesce(left_out, '{}'))
  );
  v_locked uuid[];
begin
  taken := calls;
  if is_shared then
    v_locked := core.try_lock_organisations(v_ids);
  else
    perform core.lock_organisations(v_ids);
    v_locked := v_ids;
  end if;
  if left_out is not null or cardinality(v_locked) < cardinality(v_ids) then
    select coalesce(jsonb_agg(c.call), '[]') into taken
    from jsonb_array_elements(calls) as c (call)
    where (c.call ->> 'organisation_id')::uuid = any (v_locked)
      and (c.call ->> 'n')::integer <> all (coalesce(left_out, '{}'));
  end if;
  turns := (select coalesce(max(c.turn), 0) from core.calls_of_round(taken) c);
end
$$;

comment on function core.begin_accept is
  'Lock the organisations of the calls of an accept, of either channel: which calls are taken, and in how many turns they are to be judged. Of a shared run it leaves out those whose organisation another transaction has locked.';
