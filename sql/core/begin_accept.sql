create function core.begin_accept(calls jsonb)
returns integer
language plpgsql volatile
as $$
begin
  perform core.lock_organisations(array(select distinct c.organisation_id from core.calls_in_turn(calls) c));
  return (select coalesce(max(c.turn), 0) from core.calls_in_turn(calls) c);
end
$$;

comment on function core.begin_accept is
  'Lock the organisations of the calls of an accept, of either channel. Answers in how many turns they are to be judged.';
