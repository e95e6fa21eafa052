create function core.index_settled(after uuid, until uuid, at_most integer)
returns uuid[]
language plpgsql volatile
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[] := array(
    select m.id from app.messages m where m.id > after and m.id < until order by m.id limit at_most);
begin
  perform core.add_terms(array(
    select row(m.organisation_id, core.kind_term(m.channel, m.class, m.mode, m.status), m.id,
      row_number() over (partition by m.organisation_id order by m.id))::core.message_term
    from app.messages m
    where m.id between v_ids[1] and v_ids[cardinality(v_ids)]));
  return v_ids;
end
$$;

comment on function core.index_settled is
  'Add the statuses of the next messages after an ID and before another to the index of the search. Returns their IDs, at most at_most.';
