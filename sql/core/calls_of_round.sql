create function core.calls_of_round(calls jsonb, turn integer default null)
returns table (
  n integer, organisation_id uuid, mode app.mode, key text, fingerprint text, batch boolean, turn integer
)
language sql stable
as $$
  select *
  from (
    select c.*,
      (row_number() over (partition by c.organisation_id, c.mode, c.key order by c.n))::integer as turn
    from jsonb_populate_recordset(null::core.accept_call, calls) as c
  ) c
  where c.turn = calls_of_round.turn or calls_of_round.turn is null
$$;

comment on function core.calls_of_round is
  'The calls of an accept, those with one idempotency key in turns, so that the second finds what the first left: as if they had come one after the other.';
